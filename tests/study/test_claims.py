"""Claims: the rule as it is written, and pairs of seeds."""

import pandas
import pytest

from cselab.errors import SettingsError
from cselab.study.claims import Claim, check_claims, read_claims, verdict


@pytest.mark.parametrize(
    ("difference", "low", "high", "gap", "margin", "expected"),
    [
        (0.3, 0.1, 0.5, 0.4, 0.2, "supported"),
        (0.3, 0.1, 0.5, None, 0.2, "supported"),
        (0.3, 0.1, 0.5, 3.0, 0.2, "supported, smaller"),
        (0.02, 0.01, 0.03, 3.0, 0.2, "no effect"),
        (-0.02, -0.03, -0.01, 3.0, 0.2, "no effect"),
        (0.0, 0.0, 0.0, 3.0, 0.2, "no effect"),
        (0.0, -0.2, 0.2, 3.0, 0.2, "undecided"),
        (0.15, 0.05, 0.25, 3.0, 0.2, "undecided"),
        (0.3, -0.1, 0.7, 3.0, 0.2, "undecided"),
        (-0.3, -0.5, -0.1, 0.4, 0.2, "contradicted"),
        (-0.15, -0.25, -0.05, 0.4, 0.2, "undecided"),
        (0.001, 0.0005, 0.0015, None, 0.0, "supported"),  # an energy: the sign decides
        (0.0, -0.001, 0.001, None, 0.0, "undecided"),
    ],
)
def test_the_rule(difference, low, high, gap, margin, expected):
    """Prevents a verdict for a difference too small to matter, "supported" for a tenth of the
    claimed gap, and "no effect" from an interval that reaches an effect."""
    assert verdict(difference, low, high, gap, margin) == expected


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
    assert list(table.verdict) == ["supported", "contradicted", "no runs", "no runs"]
    assert list(table.seeds) == [4, 4, 0, 0]
    assert table.difference[0] == pytest.approx(1.25)
    assert table.p[0] == pytest.approx(0.00324, abs=1e-5)  # t = 8.66, 3 degrees of freedom
    assert table.p_holm[0] == pytest.approx(2 * table.p[0])  # two claims have runs
    assert table.sd[0] == pytest.approx(0.2887, abs=1e-4)
    assert table.seeds_needed[0] == 11  # t(0.975, 10) 0.2887 / sqrt(11) = 0.194


def test_rows_that_compute_the_same_are_equal():
    """Prevents "no effect", a measured finding, for two settings that cannot differ."""
    claim = Claim(claim="a > b", source="here", better="a", than="b", gap=1.0)
    same = {1: 61.0, 2: 62.5, 3: 63.0}
    assert list(check_claims(rows(a=same, b=same), [claim]).verdict) == ["equal"]
    almost = check_claims(rows(a=same, b=same | {3: 63.01}), [claim])
    assert list(almost.verdict) == ["no effect"]


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
