"""Scores of a store that may stand in one table: one run a label and seed, of the same tests."""

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


def comparable_scores(
    store: Path, *, against: str | None = None, only: Sequence[str] = ("*",)
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
        >>> from cselab.study.comparable import comparable_scores
        >>> store = recorded.store("real-papers")
        >>> list(comparable_scores(store, against="SimCSE", only=["JTCSE"]).label.unique())
        ['SimCSE', 'JTCSE']
    """
    if not store.is_file():
        raise DataError(f"no store {store}; `cselab sweep` makes one")
    scores, runs = Store(store).scores(), Store(store).runs()
    if scores.empty:
        failed = f"no finished run ({len(runs)} failed)"
        raise DataError(f"store {store} has {failed}; `cselab sweep` goes on with it")
    against = against or scores.label.iloc[0]
    labels = set(scores.label)
    chosen = {against: {against} & labels}
    for pattern in only:
        chosen[pattern] = {x for x in labels if x == pattern or fnmatchcase(x, pattern)}
    if missing := next((pattern for pattern, some in chosen.items() if not some), None):
        raise DataError(f"no runs of {missing!r} in {store}; {suggest(missing, labels)}")
    scores = scores[scores.label.isin(set().union(*chosen.values()))]
    rows = scores[scores.key == scores.groupby(["label", "seed"], sort=False).key.transform("last")]
    _check_same_data(rows, runs.set_index("key"), store)
    order = sorted(set(rows.label), key=lambda label: (label != against, _by_number(label)))
    return rows.sort_values("label", key=lambda some: some.map(order.index), kind="stable")


def read_object(text: str) -> dict[str, Any] | None:
    """A JSON object of a store, or None for a damaged one."""
    try:
        value = json.loads(text)
    except ValueError:
        return None
    return value if isinstance(value, dict) else None


def _by_number(label: str) -> list[str | float]:
    """Sort key that compares words as words and numbers as numbers: "M = 32" before "M = 128"."""
    parts = re.split(r"(\d+(?:\.\d+)?)", label.casefold())
    return [float(part) if i % 2 else part for i, part in enumerate(parts)]


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
    """Settings of a run's text; none of a damaged configuration."""
    data = (read_object(settings) or {}).get("data")
    return [data.get(name) for name in TEXT] if isinstance(data, dict) else []
