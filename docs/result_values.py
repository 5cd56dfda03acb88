"""Numbers of the recorded studies, for the prose of their pages."""

import json
from dataclasses import dataclass
from functools import cache

import pandas

from cselab.errors import DataError, suggest
from cselab.evaluation import SeedComparison, compare_seeds
from cselab.reporting.recorded import methods, store
from cselab.reporting.rows import read_rows
from cselab.sweep.store import Store

SPREAD = 0.84
"""Standard deviation of fifty seeds of SimCSE, BERT-base: github.com/hppRC/simple-simcse."""


@dataclass(frozen=True)
class Gain:
    """A paired difference over seeds, in points; as a text with its 95 % interval."""

    found: SeedComparison

    def __str__(self) -> str:
        return f"{self.points} [{_signed(self.found.low)}, {_signed(self.found.high)}]"

    @property
    def points(self) -> str:
        return _signed(self.found.mean)


def gain(name: str, better: str, than: str, measure: str = "test") -> Gain:
    """`better` minus `than` in a store, over the seeds that both have.

    Raises DataError for a label without rows, with the nearest.
    """
    one, two = (scores(name, label, measure) for label in (better, than))
    seeds = one.index.intersection(two.index)
    return Gain(compare_seeds(one[seeds], two[seeds]))


def mean(name: str, label: str, measure: str = "test") -> str:
    """The mean score of a label in a store."""
    return f"{scores(name, label, measure).mean():.1f}"


def setting(grid: str, label: str, path: str) -> str:
    """A setting of a label in a grid."""
    return f"{methods(grid)[label].value_at(tuple(path.split('.'))):g}"


def repeated(grid: str) -> str:
    """What the runs of a grid that were made again, on this or another machine, differ by."""
    stores = [Store(store(name)) for name in (grid, f"{grid}-again")]
    chosen, run = "measure == 'test' and task == 'average'", ["label", "seed"]
    first, again = (of.scores().query(chosen).set_index(run).value for of in stores)
    here, there = (hardware(of.runs().set_index(run)) for of in stores)
    gap = (first - again).dropna().abs()
    moved = here[gap.index] != there[gap.index]
    machines = {"another machine": gap[moved], "the same machine": gap[~moved]}
    return "; ".join(
        f"{_runs(gaps)} made again on {machine} differ by {gaps.mean():.3f} points in the mean and "
        f"{gaps.max():.3f} at most"
        for machine, gaps in machines.items()
        if len(gaps)
    )


def _runs(gap: pandas.Series) -> str:
    """ "2 runs (SimCSE, TNCSE)", and of more than three rows their number."""
    labels = sorted(set(gap.index.get_level_values("label")))
    rows = ", ".join(labels) if len(labels) < 4 else f"of {len(labels)} rows"
    return f"{len(gap)} runs ({rows})"


def caption_pairs(name: str) -> str:
    """How many test pairs of a store are captions: "7,802 of 18,850"."""
    rows = rows_of(name)
    run = rows[(rows.label == rows.label.iloc[0]) & (rows.seed == rows.seed.iloc[0])]
    sizes = run[run.task != "average"].groupby("measure").n.sum()
    return f"{sizes['test'] - sizes['no captions']:,.0f} of {sizes['test']:,.0f}"


def hardware(runs: pandas.DataFrame) -> pandas.Series:
    """The machine of each run of a store; "" of a failed run."""
    return runs.environment.map(lambda text: json.loads(text or "{}").get("hardware", ""))


def scores(name: str, label: str, measure: str = "test") -> pandas.Series:
    """The averages of a label by seed; dev has one task. Raises DataError for a label without
    rows."""
    rows = rows_of(name)
    found = rows[(rows.label == label) & (rows.measure == measure)]
    if measure != "dev":
        found = found[found.task == "average"]
    if found.empty:
        raise DataError(
            f"no recorded {measure} of {label!r} in {name}; {suggest(label, rows.label)}"
        )
    return found.set_index("seed").value


@cache
def rows_of(name: str) -> pandas.DataFrame:
    """The rows of a store, read once."""
    return read_rows(store(name))


def _signed(value: float) -> str:
    return f"{value:+.2f}"
