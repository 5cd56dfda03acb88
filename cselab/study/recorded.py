"""The recorded results of this project's own studies (outputs/reference/results), over seeds, on
synthetic and on real text."""

import json
from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path

import pandas

from cselab.errors import DataError, suggest
from cselab.experiments.grid import expand, read_grid
from cselab.experiments.store import Store
from cselab.methods import MethodConfig
from cselab.paths import shipped
from cselab.study.claims import UNSEEDED
from cselab.study.comparable import comparable_scores
from cselab.study.tables import read_tables

CLAIMS = {
    "synthetic text, as the papers set it": "synthetic-papers",
    "synthetic text, as tuned here": "synthetic-tuned",
    "real text, as the papers set it": "real-papers",
    "real text, as tuned here": "real-tuned",
}
"""The stores of the claims (outputs/reference/claims.md)."""
NOT_TRAINED = (*UNSEEDED, "flow", "pooled")
"""Methods that train nothing themselves."""


def store(name: str) -> Path:
    """Path of the store of a grid's recorded runs, such as "synthetic-papers".

    Raises:
        DataError: With the nearest name, for an unknown grid.
    """
    path = shipped("reference") / "results" / f"{name}.sqlite"
    if not path.is_file():
        names = [other.stem for other in path.parent.glob("*.sqlite")]
        raise DataError(f"no recorded store {name!r}; {suggest(name, names)}")
    return path


def tables(
    against: str, only: Sequence[str], stores: Mapping[str, str] = CLAIMS
) -> dict[str, pandas.DataFrame]:
    """Compare recorded labels with one of them by `evaluation.compare_methods` (Spearman x100).

    `plots.difference_chart` draws the tables.

    Args:
        only: Labels, * and ? as in a shell; the rows come in this order, then by name and number.
        stores: Names of stores (as in `store`) by the titles of their tables; one in which
            `against` was not run has no table.

    Raises:
        DataError: With the nearest label, for a label or pattern without runs.

    Examples:
        >>> from cselab.study import recorded
        >>> tables = recorded.tables("SimCSE", ["TNCSE", "ImSimCSE"])
        >>> list(tables["real text, as the papers set it"].index)
        ['SimCSE', 'TNCSE', 'ImSimCSE']
    """
    paths = {head: store(name) for head, name in stores.items()}
    labels = {head: set(Store(path).runs().label) for head, path in paths.items()}
    known = set().union(*labels.values())
    for pattern in (against, *only):
        if not any(fnmatchcase(label, pattern) for label in known):
            raise DataError(f"no recorded runs of {pattern!r}; {suggest(pattern, known)}")

    def position(label: str) -> int:
        return next((i for i, pattern in enumerate(only) if fnmatchcase(label, pattern)), -1)

    compared = {}
    for head, path in paths.items():
        if against in labels[head]:
            here = [p for p in only if any(fnmatchcase(label, p) for label in labels[head])]
            scores = read_tables(path, against=against, only=here).numbers["scores"]
            compared[head] = scores.loc[sorted(scores.index, key=position)]
    return compared


@cache
def methods(grid: str) -> dict[str, MethodConfig]:
    """The configuration of each label of a grid of outputs/reference/grids."""
    path = shipped("reference") / "grids" / f"{grid}.toml"
    runs = expand({**read_grid(path), "seeds": 1})
    return {run.label: run.config.method for run in runs}


def trained(name: str) -> pandas.DataFrame:
    """Scores of what was trained, one a run and measure; `plots.energy_chart` draws them.

    A model that is not trained has one energy but a score for each pooling, which would distort a
    correlation of the two.
    """
    rows = comparable_scores(store(name))
    return rows[~rows["method"].isin(NOT_TRAINED)]


def decoder_scores() -> pandas.DataFrame:
    """Recorded scores of decoders on synthetic and real text (benchmarks/decoders.py): text, label,
    seed; STS (average, Spearman x100), strict accuracy, and transfer tasks (accuracy x100,
    SentEval's protocol), NaN where a row has none."""
    return _measured("decoders.json")


def _measured(file: str) -> pandas.DataFrame:
    """The rows of a JSON file, a column a score."""
    rows = json.loads((shipped("reference") / file).read_text())["rows"]
    return pandas.DataFrame([{**row.pop("scores"), **row} for row in rows])
