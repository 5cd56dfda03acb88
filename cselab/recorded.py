"""What this project's own studies gave, kept in outputs/reference/results: systems over seeds, in the world and on real text."""

from collections.abc import Sequence
from fnmatch import fnmatchcase
from pathlib import Path

import pandas

from cselab.errors import DataError, suggest
from cselab.lab import project_path
from cselab.sweep.store import Store
from cselab.sweep.tables import read_tables

TEXTS = ("world", "real")
UNTRAINED = ["sif", "untrained", "whitened"]


def store(text: str) -> Path:
    """The results of one kind of text: "world" or "real", or a study's of its own, "baselines-world"."""
    return project_path("outputs/reference/results") / f"{text}.sqlite"


def there() -> list[str]:
    """The kinds of text that have results."""
    return [text for text in TEXTS if store(text).is_file()]


def tables(against: str, only: Sequence[str]) -> dict[str, pandas.DataFrame]:
    """The chosen labels of RESULTS.md, * and ? as in a shell, compared with one of them by `evaluation.compare_methods` (Spearman x100);
    by the name of the text, of those in which that one was run: what `views.difference_chart` draws. Rows are in the order of `only`,
    and of their names and numbers.

    Raises DataError for a label that was run in neither.
    """
    labels = {text: set(Store(store(text)).runs().label) for text in there()}
    known = set().union(*labels.values())
    if against not in known:
        raise DataError(f"no recorded runs of {against!r}; {suggest(against, known)}")

    def place(label: str) -> int:
        return next((i for i, one in enumerate(only) if fnmatchcase(label, one)), -1)

    found = {text: read_tables(store(text), against=against, only=only) for text in labels if against in labels[text]}
    scores = {text: tables.numbers["scores"] for text, tables in found.items()}
    return {f"{text} text": table.loc[sorted(table.index, key=place)] for text, table in scores.items()}


def trained(text: str) -> pandas.DataFrame:
    """Rows of what was trained, one a run and measure: `views.energy_chart` draws them.

    An untrained model has one energy and as many scores as poolings, so it belongs in no correlation of the two.
    """
    rows = read_tables(store(text)).rows
    return rows[~rows.what.isin(UNTRAINED)]
