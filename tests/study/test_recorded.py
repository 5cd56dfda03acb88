"""The recorded runs that come with the project, and how they are compared."""

import pandas
import pytest

from cselab.errors import DataError
from cselab.evaluation import compare_methods
from cselab.study import recorded
from cselab.study.comparable import comparable_scores

STORES = sorted(recorded.store("real-papers").parent.glob("*.sqlite"))


def test_a_difference_is_paired_by_seed_and_keeps_the_studys_order():
    """Prevents means over different seeds, and an interval where two seeds cannot give one."""
    rows = [("B", 1, 60.0), ("B", 2, 61.0), ("B", 3, 62.0)]
    rows += [("A", 3, 63.5), ("A", 1, 61.0), ("A", 2, 62.5), ("C", 1, 70.0)]
    table = compare_methods(pandas.DataFrame(rows, columns=["method", "seed", "average"]), "B")
    assert list(table.index) == ["B", "A", "C"]
    assert table.loc["A", "difference"] == pytest.approx((1.0 + 1.5 + 1.5) / 3)
    half = 4.302653 * 0.288675 / 3**0.5  # t of 2 degrees of freedom; sd of 1, 1.5, 1.5
    assert table.loc["A", "high"] - table.loc["A", "low"] == pytest.approx(2 * half, rel=1e-4)
    assert table.seeds.tolist() == [3, 3, 1]
    assert table.loc["C", ["difference", "low", "high"]].isna().all()


def test_names_choose_rows_and_a_wrong_baseline_is_named():
    """Prevents rows that nobody asked for, or in the order in which they were finished."""
    stores = {"real text": "real-papers"}
    tables = recorded.tables("SimCSE", ["less*", "SimCSE + Barlow*"], stores)
    barlow = [f"SimCSE + Barlow, M: {rows}" for rows in (0, 128)]
    noise = ["less noise on negatives", "less noise on positives"]
    assert list(tables["real text"].index) == ["SimCSE", *noise, *barlow]
    with pytest.raises(DataError, match="SimCSEE.*did you mean 'SimCSE'"):
        recorded.tables("SimCSEE", [])
    with pytest.raises(DataError, match="no recorded store 'real-tunde'; did you mean 'real-tune"):
        recorded.store("real-tunde")


def test_a_row_of_one_text_alone_leaves_the_others_their_baseline():
    """Prevents a study of one text from being no study of it because the other has no such row."""
    found = recorded.tables("JTCSE", ["JTCSE with SICK-R"])
    assert list(found["real text, as the papers set it"].index) == ["JTCSE", "JTCSE with SICK-R"]
    assert list(found["synthetic text, as the papers set it"].index) == ["JTCSE"]


def test_a_model_without_training_is_in_no_correlation():
    """Prevents five points of one energy, a pooling each, in the plot of energy and scores."""
    labels = set(recorded.trained("synthetic-papers").label)
    assert {"SimCSE", "TNCSE"} <= labels
    assert not {"pretrained only (cls)", "SimCSE, pooled: mean", "whitened (first_last)"} & labels


@pytest.mark.parametrize("path", STORES, ids=lambda path: path.stem)
def test_recorded_stores_stay_readable(path):
    """Prevents recorded results that a change of the store or of the settings makes unreadable."""
    rows = comparable_scores(path)
    assert path.stem.startswith("synthetic") == ("Synthetic" in set(rows.task))


def test_recorded_decoders_have_a_column_for_each_score():
    """Prevents a column of dictionaries beside the scores that they hold."""
    found = recorded.decoder_scores()
    assert {"text", "label", "seed", "STS", "strict accuracy"} <= set(found.columns)
    assert set(found.drop(columns=["text", "label"]).dtypes.map(str)) <= {"int64", "float64"}
