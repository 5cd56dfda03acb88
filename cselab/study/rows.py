"""The rows of a store for tables and figures: one run a label and seed."""

import json
import re
from collections.abc import Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import pandas

from cselab.errors import DataError, suggest
from cselab.experiments.store import Store

TEXT = ("corpus", "sentences", "nli", "triplets")
"""Settings that say what is trained on; rows of one table may differ in them."""


def read_rows(
    store: Path,
    *,
    against: str | None = None,
    only: Sequence[str] = ("*",),
) -> pandas.DataFrame:
    """Read the scores of one run a label and seed: the newest, where a label was run again with
    other settings or with another version.

    Args:
        against: Label of the rows that come first, by default the first of the store; the others
            follow by their names and numbers.
        only: Labels, * and ? as in a shell.

    Returns:
        The columns of `Store.scores`, a measure and task a row.

    Raises:
        DataError: For a missing store, a store without finished runs, an unknown label, and runs on
            several kinds of data, whose scores belong in no common table.

    Examples:
        >>> from cselab.study import recorded
        >>> from cselab.study.rows import read_rows
        >>> rows = read_rows(recorded.store("real-papers"), against="SimCSE", only=["JTCSE"])
        >>> list(rows.label.unique()), rows.seed.nunique()
        (['SimCSE', 'JTCSE'], 7)
    """
    if not store.is_file():
        raise DataError(f"no store {store}; `cselab sweep` makes one")
    scores, runs = Store(store).scores(), Store(store).runs()
    if scores.empty:
        raise DataError(
            f"store {store} has no finished run ({len(runs)} failed); "
            "`cselab sweep` goes on with it"
        )
    against = against or scores.label.iloc[0]
    scores = _chosen(scores, against, only, store)
    rows = scores[scores.key == scores.groupby(["label", "seed"], sort=False).key.transform("last")]
    _check_same_data(rows, runs.set_index("key"), store)
    order = sorted(set(rows.label), key=lambda label: (label != against, by_number(label)))
    return rows.sort_values("label", key=lambda some: some.map(order.index), kind="stable")


def read_object(text: str) -> dict[str, Any] | None:
    """A JSON object of a store, or None for a damaged one."""
    try:
        found = json.loads(text)
    except ValueError:
        return None
    return found if isinstance(found, dict) else None


def by_number(label: str) -> list[str | float]:
    """Sort key that compares words as words and numbers as numbers.

    Examples:
        >>> from cselab.study.rows import by_number
        >>> sorted(["M = 128", "M = 32"], key=by_number)
        ['M = 32', 'M = 128']
    """
    parts = re.split(r"(\d+(?:\.\d+)?)", label.casefold())
    return [float(part) if i % 2 else part for i, part in enumerate(parts)]


def _chosen(
    scores: pandas.DataFrame, against: str, only: Sequence[str], store: Path
) -> pandas.DataFrame:
    """The rows of the baseline and of the chosen labels."""
    labels = set(scores.label)
    if against not in labels:
        raise DataError(f"no runs of {against!r} to compare with; {suggest(against, labels)}")
    matches = {pattern: {x for x in labels if fnmatchcase(x, pattern)} for pattern in only}
    if missing := next((pattern for pattern, some in matches.items() if not some), None):
        raise DataError(f"no runs of {missing!r} in {store}; {suggest(missing, labels)}")
    chosen = set().union(*matches.values())
    return scores[scores.label.isin({against, *chosen})]


def _check_same_data(scores: pandas.DataFrame, runs: pandas.DataFrame, store: Path) -> None:
    """Runs may train on different text, if their settings say so; but their tests have to be the
    same, and runs with equal settings have to have read equal data."""
    text = runs.profile + runs.settings.map(lambda settings: repr(_text_settings(settings)))
    kinds = scores.data.groupby(text.reindex(scores.key).to_numpy()).nunique()
    averages = scores[(scores.measure == "test") & (scores.task == "average")]
    if kinds.max() > 1 or averages.n.nunique() > 1:
        groups = scores.groupby("data", sort=False).label
        labels = [f"{data}: {', '.join(some.unique())}" for data, some in groups]
        raise DataError(
            f"store {store} has runs on {len(labels)} kinds of data ({'; '.join(labels)}); "
            "choose labels of one by --only"
        )


def _text_settings(settings: str) -> list:
    """What a run's configuration says of its text; nothing of a damaged one."""
    data = (read_object(settings) or {}).get("data")
    return [data.get(name) for name in TEXT] if isinstance(data, dict) else []
