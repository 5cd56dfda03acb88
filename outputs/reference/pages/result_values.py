"""Numbers of the recorded studies, for the prose of their pages, and the rows that they name."""

import json
from functools import cache
from pathlib import Path

import pandas

from cselab.errors import DataError, suggest
from cselab.evaluation import SeedComparison, compare_seeds
from cselab.experiments.store import Store
from cselab.study.comparable import comparable_scores
from cselab.study.recorded import methods, store

ROOT = Path(__file__).resolve().parents[3]
REFERENCE = ROOT / "outputs" / "reference"
TEXTS = ("synthetic", "real")
STAMPED = ("hardware", "torch", "commit")
"""Facts of a run's environment that its table names."""


def difference(name: str, better: str, than: str, measure: str = "test") -> SeedComparison:
    """`better` minus `than` in a store, over the seeds that both have."""
    one, two = (scores(name, label, measure) for label in (better, than))
    seeds = one.index.intersection(two.index)
    return compare_seeds(one[seeds], two[seeds])


def gain(name: str, better: str, than: str, measure: str = "test") -> str:
    """A `difference` in points with its 95 % interval: "+0.52 [+0.24, +0.81]"."""
    points = difference(name, better, than, measure)
    return f"{points.mean:+.2f} [{points.low:+.2f}, {points.high:+.2f}]"


def mean(name: str, label: str, measure: str = "test") -> str:
    """Format the mean score of a label in a store."""
    return f"{scores(name, label, measure).mean():.1f}"


def setting(grid: str, label: str, path: str) -> str:
    """Format a setting of a label in a grid."""
    return f"{methods(grid)[label].value_at(tuple(path.split('.'))):g}"


def repeated(grid: str) -> str:
    """Describe the differences of runs of a grid that were made again, on this or another
    machine."""
    stores = [Store(store(name)) for name in (grid, f"{grid}-again")]
    chosen, run = "measure == 'test' and task == 'average'", ["label", "seed"]
    first, again = (of.scores().query(chosen).set_index(run).value for of in stores)
    machine, other = (environments(of).set_index(run).hardware for of in (grid, f"{grid}-again"))
    gap = (first - again).dropna().abs()
    moved = machine[gap.index] != other[gap.index]
    machines = {"another machine": gap[moved], "the same machine": gap[~moved]}
    texts = []
    for where, gaps in machines.items():
        labels = sorted(set(gaps.index.get_level_values("label")))
        rows = ", ".join(labels) if len(labels) < 4 else f"of {len(labels)} rows"
        if labels:
            texts.append(
                f"{len(gaps)} runs ({rows}) made again on {where} differ by {gaps.mean():.3f} "
                f"points in the mean and {gaps.max():.3f} at most"
            )
    return "; ".join(texts)


def caption_pairs(name: str) -> str:
    """Number of test pairs of a store that are captions: "7,802 of 18,850"."""
    rows = rows_of(name)
    run = rows[(rows.label == rows.label.iloc[0]) & (rows.seed == rows.seed.iloc[0])]
    sizes = run[run.task != "average"].groupby("measure").n.sum()
    return f"{sizes['test'] - sizes['no captions']:,.0f} of {sizes['test']:,.0f}"


def environments(name: str) -> pandas.DataFrame:
    """The finished runs of a store, with hardware, torch and commit."""
    runs = Store(store(name)).runs().query("state == 'done'")
    stamps = runs.environment.map(json.loads)
    facts = {key: stamps.map(lambda one, key=key: one.get(key, "")) for key in STAMPED}
    return runs.assign(**facts)


def scores(name: str, label: str, measure: str = "test") -> pandas.Series:
    """Averages of a label by seed; dev has one task. Raises DataError for a label without rows."""
    rows = rows_of(floors(name) if label in floor_labels(name) else name)
    averages = rows[(rows.label == label) & (rows.measure == measure)]
    if measure != "dev":
        averages = averages[averages.task == "average"]
    if averages.empty:
        raise DataError(
            f"no recorded {measure} of {label!r} in {name}; {suggest(label, rows.label)}"
        )
    return averages.set_index("seed").value


def floors(name: str) -> str:
    """The store of the floors of a grid's text."""
    return f"{name.split('-')[0]}-floors"


@cache
def floor_labels(name: str) -> tuple[str, ...]:
    """Labels of the floors of a grid's text, but for rows that the grid has itself."""
    return tuple(set(rows_of(floors(name)).label) - set(rows_of(name).label))


@cache
def rows_of(name: str) -> pandas.DataFrame:
    """Rows of a store, read once."""
    return comparable_scores(store(name))
