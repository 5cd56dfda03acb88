"""Claims of papers, each checked against a store's runs by one rule.

    [[claims]]
    claim = "TNCSE is better than SimCSE"
    source = "JTCSE Table I"            # where the paper shows it
    better = "TNCSE"                    # labels of the store
    than = "SimCSE"
    than_otherwise = "tower"            # a store without the label `than` has this; may be left out
    minus = ["A", "B"]                  # A - B is subtracted from the difference; may be left out
    claims = "gain"                     # the default; "none": the paper claims no difference
    gap = 3.33                          # points that the paper prints; may be left out
    measure = "test"                    # the default
    task = "average"                    # the default
    margin = 0.2                        # points that matter; the default

The rule reads the mean paired difference and its interval, by Student's t over seeds; where all
runs of a claim have the measure "resamples", over seeds and test pairs
(`cselab.evaluation.compare_crossed`).

- **no difference**: the 90 % interval lies within the margin (two one-sided tests at 5 %);
- **better**, **worse**: otherwise, the 95 % interval lies above, or below, 0; **better, by less**
  where it also ends below the paper's gap;
- **equal**: the difference is 0 in every seed, because both rows compute the same;
- **undecided**: anything else; the row says how many seeds would bring the 95 % interval's
  half-width down to the margin, at the spread of these runs, if any number would.

What a paper claims is *confirmed* by "better", also by less (of a gain), or "no difference" (of
none).
"""

import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from cselab.errors import SettingsError
from cselab.evaluation.methods import holm
from cselab.evaluation.significance import (
    FEWEST_SEEDS,
    SeedComparison,
    compare_crossed,
    compare_seeds,
    seeds_for_width,
)
from cselab.experiments.measures import RESAMPLED

BETTER = "better"
LESS = "better, by less"
NO_DIFFERENCE = "no difference"
WORSE = "worse"
EQUAL = "equal"
UNDECIDED = "undecided"
NO_RUNS = "no runs"
VERDICTS = (BETTER, LESS, NO_DIFFERENCE, WORSE, UNDECIDED, EQUAL, NO_RUNS)
MARGIN = 0.2
"""Points of the average over the tests that matter: a fifth of what a method paper reports as its
gain."""
POINTS = ("test", "no captions", "dev", "change", "transfer", "senteval-transfer", "csts")
"""Measures that are correlations, shares or accuracies x100."""
UNSEEDED = ("sif", "untrained", "whitened", "words")
"""Methods that no seed changes: one run stands for all seeds."""
MOST_SEEDS = 10_000
RESULTS = ("seeds", "difference", "sd", "low", "high", "p", "p_holm", "seeds_needed", "verdict")
"""Columns that `check_claims` adds to a claim's fields."""


class Claim(BaseModel):
    """One claim about `better` minus `than`; the fields are the file's keys."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    claim: str
    source: str
    better: str
    than: str
    than_otherwise: str = ""
    minus: tuple[str, str] | None = None
    claims: Literal["gain", "none"] = "gain"
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


def verdict(found: SeedComparison, gap: float | None = None, margin: float = MARGIN) -> str:
    """Apply the rule to a difference in points, with the gap that the paper prints.

    Examples:
        >>> from cselab.evaluation import compare_seeds
        >>> from cselab.study.claims import verdict
        >>> a, b = [72.0, 72.5, 73.0], [70.9, 71.6, 72.2]
        >>> verdict(compare_seeds(a, b)), verdict(compare_seeds(a, b), gap=9.0)
        ('better', 'better, by less')
        >>> verdict(compare_seeds(a, a))
        'no difference'
    """
    if found.within(margin):
        return NO_DIFFERENCE
    if found.low > 0:
        return BETTER if gap is None or found.high >= gap else LESS
    return WORSE if found.high < 0 else UNDECIDED


def confirmed(claims: str, found: str) -> bool | None:
    """Whether a verdict is what the paper claims; None where it decides nothing."""
    if found in (UNDECIDED, EQUAL, NO_RUNS):
        return None
    return found in ((BETTER, LESS) if claims == "gain" else (NO_DIFFERENCE,))


def check_claims(scores: pandas.DataFrame, claims: Sequence[Claim]) -> pandas.DataFrame:
    """Check claims against runs: a row a claim, its fields and RESULTS.

    p is two-sided, before and after Holm's correction for all claims. Fewer than three common seeds
    count as no runs.

    Args:
        scores: Rows as `comparable_scores` gives them, one run a label and seed.
    """
    labels, table = set(scores.label), []
    for claim in claims:
        than = claim.than if claim.than in labels else claim.than_otherwise
        row = claim.model_dump() | {"than": than or claim.than, "verdict": NO_RUNS, "seeds": 0}
        pairs = [(claim.better, than), *([claim.minus] if claim.minus else [])]
        differences = [_difference(scores, pair, claim) for pair in pairs]
        wide = pandas.concat(differences, axis=1, keys=range(len(pairs))).dropna()
        if len(wide) >= FEWEST_SEEDS:
            row |= _compare(_second_subtracted(wide) if claim.minus else wide[0], claim)
        table.append(row)
    frame = pandas.DataFrame(table, columns=[*Claim.model_fields, *RESULTS])
    tested = frame.p.dropna()
    frame.loc[tested.index, "p_holm"] = holm(tested.to_numpy(dtype=float))
    return frame


def _difference(scores: pandas.DataFrame, pair: tuple[str, str], claim: Claim) -> pandas.DataFrame:
    """One label minus another, a seed a row: on the test pairs, then on their resamples if both
    have them."""
    drawn = RESAMPLED.get(claim.measure) if claim.task == "average" else None
    of_task = (scores.measure == claim.measure) & (scores.task == claim.task)
    rows = scores[scores.label.isin(pair) & (of_task | (scores.measure == drawn))]
    rows = _for_all_seeds(rows)
    wide = rows.pivot_table(index=["seed", "label"], columns=["measure", "task"], values="value")
    wide = wide.dropna(axis="columns").reindex(columns=[claim.measure, drawn], level="measure")
    one, other = (
        wide.xs(label, level="label") if label in wide.index.unique("label") else wide.iloc[:0]
        for label in pair
    )
    seeds = one.index.intersection(other.index)
    return one.loc[seeds] - other.loc[seeds]


def _second_subtracted(wide: pandas.DataFrame) -> pandas.DataFrame:
    """The first difference minus the second, in the columns that both have."""
    first, second = wide[0], wide[1]
    both = [column for column in first if column in second]
    return first[both] - second[both]


def _for_all_seeds(rows: pandas.DataFrame) -> pandas.DataFrame:
    """The rows, those of a method that no seed changes at every seed of the others."""
    if "method" not in rows:
        return rows
    once = rows.groupby("label").seed.transform("nunique") == 1
    fixed = rows.method.isin(UNSEEDED) & once
    seeds = pandas.Series(rows.seed[~fixed].unique(), name="seed")
    return pandas.concat([rows[~fixed], rows[fixed].drop(columns="seed").merge(seeds, how="cross")])


def _compare(difference: pandas.DataFrame, claim: Claim) -> dict[str, Any]:
    values, nothing = difference.to_numpy(), np.zeros_like(difference)
    if values.shape[1] > 1:
        pair = compare_crossed(values, nothing)
    else:
        pair = compare_seeds(values[:, 0], nothing[:, 0])
    row: dict[str, Any] = {"seeds": pair.n, "difference": pair.mean, "sd": pair.sd}
    row |= {"low": pair.low, "high": pair.high, "p": pair.p}
    row["verdict"] = verdict(pair, claim.gap, claim.margin)
    if (values == 0).all():
        row["verdict"] = EQUAL
    if claim.margin > 0:
        needed = seeds_for_width(pair.sd, claim.margin, pairs=pair.pairs, most=MOST_SEEDS)
        row["seeds_needed"] = needed if needed < MOST_SEEDS else None
    return row


def shown_claims(table: pandas.DataFrame) -> pandas.DataFrame:
    """Format the table of `check_claims` as text."""
    rows = [_shown(row) for _, row in table.iterrows()]
    return pandas.DataFrame(rows, index=list(table.claim))


def _shown(row: pandas.Series) -> dict[str, str]:
    ran = row.verdict != NO_RUNS
    digits = 2 if row.measure in POINTS else 4
    minus = f" − ({row.minus[0]} − {row.minus[1]})" if row.minus else ""
    gap = "" if pandas.isna(row.gap) else f"{row.gap:+.2f}"
    return {
        "paper": f"{gap} (no gain)" if gap and row.claims == "none" else gap,
        "here": f"{row.difference:+.{digits}f}" if ran else "",
        "95 % interval": f"[{row.low:+.{digits}f}, {row.high:+.{digits}f}]" if ran else "",
        "verdict": row.verdict,
        "p": _shown_p(row.p),
        "p (Holm)": _shown_p(row.p_holm),
        "seeds": str(row.seeds),
        "seeds for the margin": "" if pandas.isna(row.seeds_needed) else f"{row.seeds_needed:.0f}",
        "rows": f"{row.better} − {row.than}{minus}",
        "source": row.source,
    }


def _shown_p(p: float) -> str:
    if pandas.isna(p):
        return ""
    return "< 0.001" if p < 0.0005 else f"{p:.3f}"
