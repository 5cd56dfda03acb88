"""Claims: the rule as it is written, and pairs of seeds."""

import pandas
import pytest

from cselab.errors import SettingsError
from cselab.evaluation import SeedComparison
from cselab.study.claims import Claim, check_claims, confirmed, read_claims, verdict


@pytest.mark.parametrize(
    ("mean", "sd", "gap", "margin", "expected"),
    [  # four seeds: the 95 % interval is mean ± 1.59 sd, the 90 % interval mean ± 1.18 sd
        (0.3, 0.1, 0.4, 0.2, "better"),
        (0.3, 0.1, None, 0.2, "better"),
        (0.3, 0.1, 3.0, 0.2, "better, by less"),
        (0.1997, 0.1, None, 0.2, "better"),
        (0.02, 0.01, 3.0, 0.2, "no difference"),
        (-0.02, 0.01, 3.0, 0.2, "no difference"),
        (0.0, 0.0, 3.0, 0.2, "no difference"),
        (0.0, 0.16, 3.0, 0.2, "no difference"),  # of the 95 % interval it would be undecided
        (0.0, 0.18, 3.0, 0.2, "undecided"),
        (0.3, 0.25, 3.0, 0.2, "undecided"),
        (-0.3, 0.1, 0.4, 0.2, "worse"),
        (0.001, 0.0003, None, 0.0, "better"),  # an energy: the sign decides
        (0.0, 0.001, None, 0.0, "undecided"),
    ],
)
def test_the_rule(mean, sd, gap, margin, expected):
    """Prevents a verdict for a difference too small to matter, "better" for a tenth of the claimed
    gap, "no difference" from an interval that reaches one, and a mean that tips a verdict."""
    assert verdict(SeedComparison.of(4, mean, sd), gap, margin) == expected


def test_a_claim_of_no_gain_is_confirmed_by_no_difference():
    """Prevents "contradicted" for what a paper calls insignificant."""
    assert confirmed("none", "no difference")
    assert not confirmed("none", "better, by less")
    assert confirmed("gain", "better, by less")
    assert not confirmed("gain", "no difference")
    assert confirmed("gain", "undecided") is None


def rows(**scores):
    return pandas.DataFrame(
        [
            {"label": label, "seed": seed, "measure": "test", "task": "average", "value": value}
            for label, values in scores.items()
            for seed, value in values.items()
        ]
    )


def test_a_claim_is_read_off_the_seeds_that_both_have():
    """Prevents an unpaired comparison, and seeds that are counted for another width."""
    scores = rows(
        a={1: 61.0, 2: 62.5, 3: 63.0, 4: 64.5, 9: 99.0},
        b={1: 60.0, 2: 61.0, 3: 62.0, 4: 63.0, 8: 0.0},
        c={1: 5.0},
    )
    claims = [
        Claim(claim=f"{one} > {other}", source="here", better=one, than=other)
        for one, other in ("ab", "ba", "ac", "ad")
    ]
    table = check_claims(scores, claims)
    assert list(table.verdict) == ["better", "worse", "no runs", "no runs"]
    assert list(table.seeds) == [4, 4, 0, 0]
    assert table.difference[0] == pytest.approx(1.25)
    assert table.p[0] == pytest.approx(0.00324, abs=1e-5)  # t = 8.66, 3 degrees of freedom
    assert table.p_holm[0] == pytest.approx(2 * table.p[0])  # two claims have runs
    assert table.sd[0] == pytest.approx(0.2887, abs=1e-4)
    assert table.seeds_needed[0] == 11  # t(0.975, 10) 0.2887 / sqrt(11) = 0.194


def test_rows_that_compute_the_same_are_equal():
    """Prevents "no difference", a measured finding, for two settings that cannot differ."""
    claim = Claim(claim="a > b", source="here", better="a", than="b", gap=1.0)
    same = {1: 61.0, 2: 62.5, 3: 63.0}
    assert list(check_claims(rows(a=same, b=same), [claim]).verdict) == ["equal"]
    almost = check_claims(rows(a=same, b=same | {3: 63.01}), [claim])
    assert list(almost.verdict) == ["no difference"]


def test_a_second_difference_is_subtracted_seed_by_seed():
    """Prevents (a − b) − (c − d) with the spread of two unpaired differences."""
    scores = rows(
        a={1: 3.0, 2: 5.0, 3: 7.5}, b={1: 1.0, 2: 2.0, 3: 3.0},
        c={1: 2.0, 2: 4.0, 3: 6.0}, d={1: 1.0, 2: 2.0, 3: 3.0},
    )  # fmt: skip
    claim = Claim(claim="x", source="here", better="a", than="b", minus=("c", "d"))
    (row,) = check_claims(scores, [claim]).itertuples()
    assert row.difference == pytest.approx((1.0 + 1.0 + 1.5) / 3)
    assert row.sd == pytest.approx(0.2887, abs=1e-4)


def test_resamples_of_the_pairs_widen_an_interval():
    """Prevents intervals over seeds alone where a store knows the variation over test pairs."""
    scores = rows(a={1: 2.0, 2: 2.1, 3: 2.2}, b={1: 1.0, 2: 1.1, 3: 1.2})
    claim = Claim(claim="a > b", source="here", better="a", than="b")
    (plain,) = check_claims(scores, [claim]).itertuples()
    drawn = [
        {"label": label, "seed": seed, "measure": "resample", "task": str(i), "value": value}
        for seed in (1, 2, 3)
        for i, gap in enumerate((0.5, 1.0, 1.5))
        for label, value in (("a", seed + gap), ("b", float(seed)))
    ]
    (both,) = check_claims(pandas.concat([scores, pandas.DataFrame(drawn)]), [claim]).itertuples()
    assert both.difference == pytest.approx(plain.difference)
    assert plain.high - plain.low == pytest.approx(0, abs=1e-9)
    half = 4.302653 * 0.5  # t of 2 degrees of freedom; the resamples' sd, alike at all seeds
    assert both.high - both.difference == pytest.approx(half, rel=1e-4)
    assert pandas.isna(both.seeds_needed)  # no number of seeds lowers it


def test_one_run_of_a_floor_stands_for_every_seed():
    """Prevents "no runs" for a method that no seed changes, and such a row for a trained one."""
    scores = rows(a={1: 2.0, 2: 2.1, 3: 2.2}, b={1: 1.0}, c={1: 1.0})
    scores["method"] = scores.label.map({"a": "simcse", "b": "words", "c": "simcse"})
    claims = [Claim(claim=x, source="here", better="a", than=x) for x in "bc"]
    assert list(check_claims(scores, claims).verdict) == ["better", "no runs"]


def test_another_row_stands_for_one_that_a_grid_does_not_have():
    """Prevents a claim without an answer where two rows of another grid are one run."""
    claim = Claim(claim="a > c", source="here", better="a", than="c", than_otherwise="b")
    scores = {"a": {1: 2.0, 2: 2.1, 3: 2.2}, "b": dict.fromkeys((1, 2, 3), 1.0)}
    with_c = scores | {"c": dict.fromkeys((1, 2, 3), 0.0)}
    for given, than, difference in ((scores, "b", 1.1), (with_c, "c", 2.1)):
        (row,) = check_claims(rows(**given), [claim]).itertuples()
        assert row.than == than
        assert row.difference == pytest.approx(difference)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('[[claims]]\nclaim = "x"', "source: Field required"),
        ("claims = 3 =", "expected TOML"),
        (
            '[[claims]]\nclaim="x"\nsource="s"\nbetter="a"\nthan="b"\ngap=-1',
            "gap: .* greater than 0",
        ),
        ("claims = []", "claims: List should have at least 1 item"),
    ],
)
def test_a_bad_file_is_one_line(tmp_path, text, message):
    """Prevents a traceback of TOML or pydantic, and a key that is read over."""
    (tmp_path / "c.toml").write_text(text)
    with pytest.raises(SettingsError, match=message):
        read_claims(tmp_path / "c.toml")
