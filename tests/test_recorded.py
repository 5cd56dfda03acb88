"""What comes with the project as recorded runs, and how it is compared."""

import pandas
import pytest

from cselab import recorded
from cselab.errors import DataError
from cselab.evaluation import compare_methods


def test_a_difference_is_paired_by_seed_and_keeps_the_studys_order():
    """Prevents means over different seeds, and an interval where two seeds cannot give one."""
    rows = [
        ("B", 1, 60.0),
        ("B", 2, 61.0),
        ("B", 3, 62.0),
        ("A", 3, 63.5),
        ("A", 1, 61.0),
        ("A", 2, 62.5),
        ("C", 1, 70.0),
    ]
    found = compare_methods(pandas.DataFrame(rows, columns=["method", "seed", "average"]), "B")
    assert list(found.index) == ["B", "A", "C"]
    assert found.loc["A", "difference"] == pytest.approx((1.0 + 1.5 + 1.5) / 3)
    half = 4.302653 * 0.288675 / 3**0.5  # t of 2 degrees of freedom; sd of 1, 1.5, 1.5
    assert found.loc["A", "high"] - found.loc["A", "low"] == pytest.approx(2 * half, rel=1e-4)
    assert found.seeds.tolist() == [3, 3, 1]
    assert found.loc["C", ["difference", "low", "high"]].isna().all()


def test_names_choose_rows_and_a_wrong_baseline_is_named():
    rows = recorded.systems("world")
    assert list(compare_methods(rows, "SimCSE", ["TNCSE", "JTCSE, *"]).index)[:2] == ["SimCSE", "TNCSE"]
    with pytest.raises(DataError, match="SimCSEE.*SIF mean"):
        compare_methods(rows, "SimCSEE")


@pytest.mark.parametrize("text", ["real", "world"])
def test_every_recorded_system_has_its_three_seeds(text):
    """Prevents a table in which a method was lucky to have one seed."""
    seeds = recorded.systems(text).groupby("method").seed.apply(sorted)
    assert seeds.map(lambda found: found == [42, 43, 44]).all(), seeds[seeds.map(len) != 3]
