"""Claims: the rule as it is written, and pairs of seeds."""

import pandas
import pytest

from cselab.errors import SettingsError
from cselab.reporting.claims import Claim, check_claims, read_claims, verdict


@pytest.mark.parametrize(
    ("low", "high", "gap", "expected"),
    [
        (0.1, 0.3, 0.2, "supported"),
        (0.01, 0.02, 3.0, "supported"),
        (0.1, 0.3, None, "supported"),
        (-0.3, -0.1, 0.2, "contradicted"),
        (-0.1, 0.1, 0.2, "no effect found"),
        (0.0, 0.0, 0.2, "no effect found"),
        (-0.1, 0.3, 0.2, "under-powered"),
        (-0.1, 0.1, None, "under-powered"),
    ],
)
def test_the_rule(low, high, gap, expected):
    """Prevents a claim that counts as supported although its interval touches 0, and one refuted by
    an interval wider than its gap."""
    assert verdict(low, high, gap) == expected


def rows(**scores):
    return pandas.DataFrame(
        [
            {"label": label, "seed": seed, "measure": "test", "task": "average", "value": value}
            for label, values in scores.items()
            for seed, value in values.items()
        ]
    )


def test_a_claim_is_read_off_the_seeds_that_both_have():
    """Prevents an unpaired comparison, a paper's gap that is compared with a mean, and power for
    the difference that was seen."""
    scores = rows(
        a={1: 61.0, 2: 62.5, 3: 63.0, 4: 64.5, 9: 99.0},
        b={1: 60.0, 2: 61.0, 3: 62.0, 4: 63.0, 8: 0.0},
        c={1: 5.0},
    )
    claims = [
        Claim(claim="a > b", source="here", better="a", than="b", gap=0.5),
        Claim(claim="b > a", source="here", better="b", than="a"),
        Claim(claim="a > c", source="here", better="a", than="c"),
        Claim(claim="a > d", source="here", better="a", than="d"),
    ]
    table = check_claims(scores, claims)
    assert list(table.verdict) == ["supported", "contradicted", "no runs", "no runs"]
    assert list(table.seeds) == [4, 4, 0, 0]
    assert table.difference[0] == pytest.approx(1.25)
    assert table.p_holm[0] == pytest.approx(0.25)
    assert table.seeds_needed[0] == 5  # d = 0.5 / 0.2887
    assert 0.6 < table.power[0] < 0.8
    assert pandas.isna(table.power[1])


COMPLETE = '[[claims]]\nclaim="x"\nsource="s"\nbetter="a"\nthan="b"\n'


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('[[claims]]\nclaim = "x"', "source: Field required"),
        ("claims = 3 =", "expected TOML"),
        (COMPLETE + "gap=-1", "gap: Input should be greater than 0"),
        (COMPLETE + "gaps=1", "gaps: Extra inputs"),
    ],
)
def test_a_bad_file_is_one_line(tmp_path, text, message):
    (tmp_path / "c.toml").write_text(text)
    with pytest.raises(SettingsError, match=message):
        read_claims(tmp_path / "c.toml")
