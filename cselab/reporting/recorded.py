"""The recorded results of this project's own studies, over seeds, on synthetic and on real text.

They stand in outputs/reference/results; the names of the files call the synthetic text "world".
"""

import json
from collections.abc import Sequence
from fnmatch import fnmatchcase
from pathlib import Path

import pandas

from cselab.errors import DataError, suggest
from cselab.experiments.workspace import project_path
from cselab.methods.config import TrainedConfig
from cselab.reporting.tables import read_tables
from cselab.sweep.grid import expand, read_grid
from cselab.sweep.store import Store

TEXTS = ("synthetic", "real")
UNTRAINED = ("flow", "sif", "untrained", "whitened")


def file_name(text: str) -> str:
    """The name of a grid or store: "world" of "synthetic", "baselines-world" of
    "baselines-synthetic"."""
    return text.replace("synthetic", "world")


def store(text: str) -> Path:
    """The store of one kind of text, "synthetic" or "real", or of a study, "baselines-real"."""
    return project_path("outputs/reference/results") / f"{file_name(text)}.sqlite"


def recorded_texts() -> list[str]:
    """The kinds of text that have results."""
    return [text for text in TEXTS if store(text).is_file()]


def tables(against: str, only: Sequence[str]) -> dict[str, pandas.DataFrame]:
    """Compare recorded labels with one of them by `evaluation.compare_methods` (Spearman x100).

    The result has one table for each kind of text in which `against` was run, by its name
    ("synthetic text", "real text"); `plots.difference_chart` draws them. Rows are in the order of
    `only`, then by their names and numbers.

    only: labels, * and ? as in a shell.

    Raises DataError for a label or pattern without runs, with the nearest label.
    """
    labels = {text: set(Store(store(text)).runs().label) for text in recorded_texts()}
    known = set().union(*labels.values())
    for pattern in (against, *only):
        if not any(fnmatchcase(label, pattern) for label in known):
            raise DataError(f"no recorded runs of {pattern!r}; {suggest(pattern, known)}")

    def place(label: str) -> int:
        return next((i for i, pattern in enumerate(only) if fnmatchcase(label, pattern)), -1)

    found = {}
    for text in labels:
        if against in labels[text]:
            scores = read_tables(store(text), against=against, only=only).numbers["scores"]
            found[f"{text} text"] = scores.loc[sorted(scores.index, key=place)]
    return found


def steps(text: str) -> dict[str, int]:
    """Training steps of each label of a text's main grid that is trained: of its last stage."""
    folder = project_path("outputs/reference/grids")
    runs = expand(read_grid(folder / f"{file_name(text)}.toml"), project_path("notebooks"))
    methods = {run.label: run.config.method for run in runs}
    return {
        label: method.schedule.steps
        for label, method in methods.items()
        if isinstance(method, TrainedConfig)
    }


def trained(text: str) -> pandas.DataFrame:
    """The rows of what was trained, one a run and measure; `plots.energy_chart` draws them.

    Untrained models are left out: one has a single energy but a score for each pooling, which
    would distort a correlation of the two.
    """
    rows = read_tables(store(text)).rows
    return rows[~rows["method"].isin(UNTRAINED)]


def transfer_protocols() -> pandas.DataFrame:
    """Transfer accuracy x100 by two protocols on the same vectors (benchmarks/protocols.py).

    Columns: label, seed, protocol, the tasks, average. An untrained row has one seed.
    """
    path = project_path("outputs/reference") / "transfer-protocols.json"
    rows = json.loads(path.read_text())["rows"]
    found = pandas.DataFrame([{**row.pop("scores"), **row} for row in rows])
    tasks = found.columns.drop(["label", "seed", "protocol"])
    return found.assign(average=found[tasks].mean(axis=1))
