"""Claims of papers, each checked against a store's runs by one rule, which was written before them.

    [[claims]]
    claim = "TNCSE is better than SimCSE"
    source = "JTCSE Table I"            # where the paper shows it
    better = "TNCSE"                    # labels of the store
    than = "SimCSE"
    gap = 3.33                          # points that the paper prints; may be left out
    task = "average"                    # the default, of the test scores

The rule reads the 95 % t interval of the paired difference over seeds. A claim is **supported**
where the interval lies above 0 and **contradicted** where it lies below. **No effect found** means
that the interval holds 0 and ends below the paper's gap. Every other claim is **under-powered**;
its row says how many seeds would show the paper's gap four times in five.
"""

import tomllib
from collections.abc import Sequence
from pathlib import Path

import pandas
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from cselab.errors import SettingsError
from cselab.evaluation import compare_seeds
from cselab.evaluation.methods import holm
from cselab.evaluation.significance import paired_t_power, seeds_needed

SUPPORTED = "supported"
CONTRADICTED = "contradicted"
NO_EFFECT = "no effect found"
UNDER_POWERED = "under-powered"
NO_RUNS = "no runs"
VERDICTS = (SUPPORTED, CONTRADICTED, NO_EFFECT, UNDER_POWERED, NO_RUNS)
POINTS = ("test", "no captions", "dev", "phenomenon", "transfer")
"""Measures that are correlations or accuracies x100."""
RESULTS = ("seeds", "difference", "low", "high", "p", "p_holm", "power", "seeds_needed", "verdict")
"""Columns of `check_claims` after the claim's own."""


class Claim(BaseModel):
    """One claim: `better` scores higher than `than`; the fields are the file's keys."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    claim: str
    source: str
    better: str
    than: str
    gap: float | None = Field(None, gt=0)
    measure: str = "test"
    task: str = "average"


def read_claims(path: Path) -> list[Claim]:
    """Read the claims of a TOML file.

    Raises SettingsError for an unreadable file, an unknown or missing key, and a gap that is not
    above 0.
    """
    try:
        blocks = tomllib.loads(path.read_text(encoding="utf-8")).get("claims", [])
    except (OSError, tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise SettingsError(
            f"no claims in {path} ({error}); expected TOML with [[claims]] blocks"
        ) from None
    try:
        return [Claim(**block) for block in blocks]
    except ValidationError as error:
        first = error.errors()[0]
        raise SettingsError(f"{path}: {'.'.join(map(str, first['loc']))}: {first['msg']}") from None


def verdict(low: float, high: float, gap: float | None) -> str:
    """Apply the rule to an interval and the paper's gap, both in points."""
    if low > 0:
        return SUPPORTED
    if high < 0:
        return CONTRADICTED
    return NO_EFFECT if gap is not None and high < gap else UNDER_POWERED


def check_claims(scores: pandas.DataFrame, claims: Sequence[Claim]) -> pandas.DataFrame:
    """Check claims against runs; one row a claim, in order.

    A row has the claim, the number of seeds that both labels have, the mean difference with its
    interval, the p of the sign-flip test before and after Holm's correction for all claims, the
    power for the paper's gap, the seeds that a power of 80 % needs (at the spread of these runs),
    and the verdict.

    scores: rows as `Store.scores` gives them, one run a label and seed. Fewer than three common
        seeds count as no runs.
    """
    table = []
    for claim in claims:
        measured = scores[(scores.measure == claim.measure) & (scores.task == claim.task)]
        pair = measured[measured.label.isin([claim.better, claim.than])]
        wide = pair.pivot_table(index="seed", columns="label", values="value")
        row = claim.model_dump() | {"verdict": NO_RUNS, "seeds": 0}
        if wide.shape[1] == 2 and len(wide.dropna()) > 2:
            wide = wide.dropna()
            row |= _compare(wide[claim.better], wide[claim.than], claim.gap)
        table.append(row)
    frame = pandas.DataFrame(table, columns=[*Claim.model_fields, *RESULTS])
    tested = frame.p.dropna()
    frame.loc[tested.index, "p_holm"] = holm(tested.to_numpy(dtype=float))
    return frame


def _compare(better: pandas.Series, than: pandas.Series, gap: float | None) -> dict[str, object]:
    found = compare_seeds(better, than)
    row = {
        "seeds": found.n,
        "difference": found.mean,
        "low": found.low,
        "high": found.high,
        "p": found.p_permutation,
        "verdict": verdict(found.low, found.high, gap),
    }
    if gap is not None and found.sd > 0:
        effect = gap / found.sd
        row |= {"power": paired_t_power(effect, found.n), "seeds_needed": seeds_needed(effect)}
    return row


def shown_claims(table: pandas.DataFrame) -> pandas.DataFrame:
    """Format the table of `check_claims` as text."""
    rows = [_shown(row) for _, row in table.iterrows()]
    return pandas.DataFrame(rows, index=list(table.claim))


def _shown(row: pandas.Series) -> dict[str, str]:
    ran, known = row.verdict != NO_RUNS, pandas.notna(row.power)
    digits = 2 if row.measure in POINTS else 4
    return {
        "paper": "" if pandas.isna(row.gap) else f"{row.gap:+.2f}",
        "here": f"{row.difference:+.{digits}f}" if ran else "",
        "95 % interval": f"[{row.low:+.{digits}f}, {row.high:+.{digits}f}]" if ran else "",
        "verdict": row.verdict,
        "p": f"{row.p:.3f}" if ran else "",
        "p (Holm)": f"{row.p_holm:.3f}" if ran else "",
        "seeds": str(row.seeds),
        "power": f"{row.power:.0%}" if known else "",
        "seeds for 80 %": f"{row.seeds_needed:.0f}" if known else "",
        "rows": f"{row.better} − {row.than}",
        "source": row.source,
    }
