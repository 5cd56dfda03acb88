"""Claims of papers, each held against a store's runs by one rule that was there before them.

    [[claims]]
    claim = "TNCSE is better than SimCSE"
    source = "JTCSE Table I"            # where the paper shows it
    better = "TNCSE"                    # labels of the store
    than = "SimCSE"
    gap = 3.33                          # what the paper prints, in points; leave it out where it prints none
    task = "average"                    # as here by default, of the test scores

The rule reads the 95 % t interval of the paired difference over seeds: **held** where it lies above 0, **reversed** where it lies
below, **not seen** where it holds 0 and ends below the paper's gap, and else **under-powered**, with the seeds that would show the
paper's gap four times in five.
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

NO_RUNS = "no runs"
POINTS = ("test", "no captions", "dev", "phenomenon", "transfer")
"""Measures that are correlations or accuracies x100."""


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
    """The claims of a TOML file. Raises SettingsError for an unreadable one, an unknown or missing key, and a gap that is not above 0."""
    try:
        blocks = tomllib.loads(path.read_text(encoding="utf-8")).get("claims", [])
    except (OSError, tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise SettingsError(f"no claims in {path} ({error}); expected TOML with [[claims]] blocks") from None
    try:
        return [Claim(**block) for block in blocks]
    except ValidationError as error:
        first = error.errors()[0]
        raise SettingsError(f"{path}: {'.'.join(map(str, first['loc']))}: {first['msg']}") from None


def verdict(low: float, high: float, gap: float | None) -> str:
    """The rule, of an interval and the paper's gap in points."""
    if low > 0:
        return "held"
    if high < 0:
        return "reversed"
    return "not seen" if gap is not None and high < gap else "under-powered"


def check_claims(scores: pandas.DataFrame, claims: Sequence[Claim]) -> pandas.DataFrame:
    """A row a claim, in order: the claim, the seeds that both labels have, difference, interval, p of the sign-flip test, the same after
    Holm's correction for all claims, power for the paper's gap and the seeds that 80 % of it take (at the spread seen), verdict.

    scores: rows as `Store.scores` gives them, one run a label and seed. Fewer than three common seeds are no runs.
    """
    table = []
    for claim in claims:
        mine = scores[(scores.measure == claim.measure) & (scores.task == claim.task)]
        wide = mine[mine.label.isin([claim.better, claim.than])].pivot_table(
            index="seed", columns="label", values="value"
        )
        row = claim.model_dump() | {"verdict": NO_RUNS, "seeds": 0}
        if wide.shape[1] == 2 and len(wide.dropna()) > 2:
            wide = wide.dropna()
            found = compare_seeds(wide[claim.better], wide[claim.than])
            row |= {
                "seeds": found.n, "difference": found.mean, "low": found.low, "high": found.high, "p": found.p_permutation,
                "verdict": verdict(found.low, found.high, claim.gap),
            }  # fmt: skip
            if claim.gap is not None and found.sd > 0:
                effect = claim.gap / found.sd
                row |= {"power": paired_t_power(effect, found.n), "seeds_needed": seeds_needed(effect)}
        table.append(row)
    columns = [
        *Claim.model_fields,
        "seeds",
        "difference",
        "low",
        "high",
        "p",
        "p_holm",
        "power",
        "seeds_needed",
        "verdict",
    ]
    frame = pandas.DataFrame(table, columns=columns)
    tested = frame.p.dropna()
    frame.loc[tested.index, "p_holm"] = holm(tested.to_numpy(dtype=float))
    return frame


def shown_claims(table: pandas.DataFrame) -> pandas.DataFrame:
    """`check_claims` as texts for a reader."""

    def one(row: pandas.Series) -> dict[str, str]:
        ran = row.verdict != NO_RUNS
        known, digits = pandas.notna(row.power), 2 if row.measure in POINTS else 4
        return {
            "paper": "" if pandas.isna(row.gap) else f"{row.gap:+.2f}",
            "here": f"{row.difference:+.{digits}f}" if ran else "",
            "95 % interval": f"[{row.low:+.{digits}f}, {row.high:+.{digits}f}]" if ran else "",
            "verdict": row.verdict,
            "p": f"{row.p:.3f}" if ran else "", "p (Holm)": f"{row.p_holm:.3f}" if ran else "", "seeds": str(row.seeds),
            "power": f"{row.power:.0%}" if known else "", "seeds for 80 %": f"{row.seeds_needed:.0f}" if known else "",
            "rows": f"{row.better} − {row.than}", "source": row.source,
        }  # fmt: skip

    return pandas.DataFrame([one(row) for _, row in table.iterrows()], index=list(table.claim))
