"""Claims of papers, each checked against a store's runs by one rule, which was written before them.

    [[claims]]
    claim = "TNCSE is better than SimCSE"
    source = "JTCSE Table I"            # where the paper shows it
    better = "TNCSE"                    # labels of the store
    than = "SimCSE"
    than_otherwise = "tower"            # a store without the label `than` has this; may be left out
    gap = 3.33                          # points that the paper prints; may be left out
    task = "average"                    # the default, of the test scores
    margin = 0.2                        # points that matter; the default

The rule reads the mean paired difference over seeds and its 95 % t interval:

- **no effect**: the interval lies within the margin, whichever side of 0 it is on;
- **supported**: it lies above 0, and the mean is not below the margin; **supported, smaller** where
  it also ends below the paper's gap;
- **contradicted**: it lies below 0, and the mean is not above the negative margin;
- **equal**: the difference is 0 in every seed, because both rows compute the same;
- **undecided**: anything else; the row says how many seeds would bring the interval's half-width
  down to the margin, at the spread of these runs.
"""

import tomllib
from collections.abc import Sequence
from pathlib import Path

import pandas
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from cselab.errors import SettingsError
from cselab.evaluation.methods import holm
from cselab.evaluation.significance import compare_seeds, seeds_for_width

SUPPORTED = "supported"
SMALLER = "supported, smaller"
NO_EFFECT = "no effect"
CONTRADICTED = "contradicted"
EQUAL = "equal"
UNDECIDED = "undecided"
NO_RUNS = "no runs"
VERDICTS = (SUPPORTED, SMALLER, NO_EFFECT, CONTRADICTED, UNDECIDED, EQUAL, NO_RUNS)
MARGIN = 0.2
"""Points of the average over seven STS tasks that matter: a fifth of what a method paper reports as
its gain."""
POINTS = ("test", "no captions", "dev", "phenomenon", "transfer")
"""Measures that are correlations or accuracies x100."""
RESULTS = ("seeds", "difference", "sd", "low", "high", "p", "p_holm", "seeds_needed", "verdict")
"""Columns that `check_claims` adds to a claim's fields."""


class Claim(BaseModel):
    """One claim: `better` scores higher than `than`; the fields are the file's keys."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    claim: str
    source: str
    better: str
    than: str
    than_otherwise: str = ""
    gap: float | None = Field(None, gt=0)
    measure: str = "test"
    task: str = "average"
    margin: float = Field(MARGIN, ge=0)


class _File(BaseModel):
    model_config = ConfigDict(extra="forbid")
    claims: list[Claim] = Field(min_length=1)


def read_claims(path: Path) -> list[Claim]:
    """Read the claims of a TOML file.

    Raises:
        SettingsError: For an unreadable file, and for keys or values that a claim does not have.
    """
    try:
        return list(_File(**tomllib.loads(path.read_text(encoding="utf-8"))).claims)
    except ValidationError as error:
        first = error.errors()[0]
        raise SettingsError(f"{path}: {'.'.join(map(str, first['loc']))}: {first['msg']}") from None
    except (OSError, ValueError) as error:  # ValueError: no TOML, no UTF-8
        raise SettingsError(
            f"{path} has no claims ({error}); expected TOML with [[claims]]"
        ) from None


def verdict(
    difference: float, low: float, high: float, gap: float | None, margin: float = MARGIN
) -> str:
    """Apply the rule to a mean difference, its interval's ends and the printed gap, in points."""
    if -margin < low and high < margin:
        return NO_EFFECT
    if low > 0 and difference >= margin:
        return SUPPORTED if gap is None or high >= gap else SMALLER
    if high < 0 and difference <= -margin:
        return CONTRADICTED
    return UNDECIDED


def check_claims(scores: pandas.DataFrame, claims: Sequence[Claim]) -> pandas.DataFrame:
    """Check claims against runs: a row a claim, its fields and RESULTS.

    p is of the paired t test, before and after Holm's correction for all claims. Fewer than three
    common seeds count as no runs.

    Args:
        scores: Rows as `comparable_scores` gives them, one run a label and seed.
    """
    table = []
    for claim in claims:
        measured = scores[(scores.measure == claim.measure) & (scores.task == claim.task)]
        labels = set(measured.label)
        than = claim.than if claim.than in labels else claim.than_otherwise
        row = claim.model_dump() | {"than": than or claim.than, "verdict": NO_RUNS, "seeds": 0}
        if {claim.better, than} <= labels:
            pair = measured[measured.label.isin([claim.better, than])]
            wide = pair.pivot_table(index="seed", columns="label", values="value").dropna()
            if len(wide) > 2:
                row |= _compare(wide[claim.better], wide[than], claim)
        table.append(row)
    frame = pandas.DataFrame(table, columns=[*Claim.model_fields, *RESULTS])
    tested = frame.p.dropna()
    frame.loc[tested.index, "p_holm"] = holm(tested.to_numpy(dtype=float))
    return frame


def _compare(better: pandas.Series, than: pandas.Series, claim: Claim) -> dict[str, object]:
    pair = compare_seeds(better, than)
    row: dict[str, object] = {"seeds": pair.n, "difference": pair.mean, "sd": pair.sd}
    row |= {"low": pair.low, "high": pair.high, "p": pair.p}
    row["verdict"] = verdict(pair.mean, pair.low, pair.high, claim.gap, claim.margin)
    if (better == than).all():
        row["verdict"] = EQUAL
    if claim.margin > 0:
        row["seeds_needed"] = seeds_for_width(pair.sd, claim.margin)
    return row


def shown_claims(table: pandas.DataFrame) -> pandas.DataFrame:
    """Format the table of `check_claims` as text."""
    rows = [_shown(row) for _, row in table.iterrows()]
    return pandas.DataFrame(rows, index=list(table.claim))


def _shown(row: pandas.Series) -> dict[str, str]:
    ran = row.verdict != NO_RUNS
    digits = 2 if row.measure in POINTS else 4
    return {
        "paper": "" if pandas.isna(row.gap) else f"{row.gap:+.2f}",
        "here": f"{row.difference:+.{digits}f}" if ran else "",
        "95 % interval": f"[{row.low:+.{digits}f}, {row.high:+.{digits}f}]" if ran else "",
        "verdict": row.verdict,
        "p": _shown_p(row.p),
        "p (Holm)": _shown_p(row.p_holm),
        "seeds": str(row.seeds),
        "seeds for the margin": "" if pandas.isna(row.seeds_needed) else f"{row.seeds_needed:.0f}",
        "rows": f"{row.better} − {row.than}",
        "source": row.source,
    }


def _shown_p(p: float) -> str:
    if pandas.isna(p):
        return ""
    return "< 0.001" if p < 0.0005 else f"{p:.3f}"
