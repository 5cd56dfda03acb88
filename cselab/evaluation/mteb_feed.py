"""Give mteb's tasks local data.

The revision of such a task is the fingerprint of its data, which mteb writes into the result file.
"""

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from datasets import Dataset, DatasetDict
from mteb.abstasks import AbsTask, AbsTaskRetrieval

from cselab.data.sources import data_folder
from cselab.evaluation.mteb_data import FEEDS, Splits


def feed(
    tasks: Sequence[AbsTask], folder: str | Path | None = None
) -> tuple[list[AbsTask], list[str]]:
    """Give tasks their data, without the hub; subsets that have none are left out.

    Args:
        tasks: Tasks of `find_tasks`.
        folder: A data folder, CSELAB_DATA by default; without one, the tasks of synthetic text.

    Returns:
        The tasks that have data, and a line about each that lacks some: what it needs.

    Raises:
        DataError: For a file that is damaged or malformed.

    Examples:
        >>> from cselab.evaluation.mteb_feed import feed
        >>> from cselab.evaluation.mteb_tasks import find_tasks
        >>> fed, lacking = feed(find_tasks(["SyntheticSTS", "SciFact"]))
        >>> lacking
        ['SciFact needs the hub (mteb/scifact): --hub']
    """
    where, fed, lacking = data_folder(folder), [], []
    for task in tasks:
        name, path = task.metadata.name, task.metadata.dataset["path"]
        if name not in FEEDS:
            lacking.append(f"{name} needs the hub ({path}): --hub")
            continue
        missing = [part for part in task.hf_subsets if not _has_files(name, part, where)]
        if missing:
            files = sorted({file for part in missing for file in FEEDS[name].files.get(part, ())})
            more = f" and {len(files) - 1} more files" if len(files) > 1 else ""
            local = [f"{files[0]}{more} of a data folder"] if files else []
            hub = [] if path.startswith("cselab/") else [f"the hub ({path}): --hub"]
            parts = "" if missing == ["default"] else f" ({', '.join(missing)})"
            lacking.append(f"{name}{parts} needs {' or '.join(local + hub)}")
        if len(missing) < len(task.hf_subsets):
            fed.append(_feed_one(task, [p for p in task.hf_subsets if p not in missing], where))
    return fed, lacking


def _has_files(name: str, subset: str, where: Path | None) -> bool:
    files = FEEDS[name].files.get(subset)
    return files is not None and all(where and (where / file).exists() for file in files)


def _feed_one(task: AbsTask, chosen: list[str], where: Path | None) -> AbsTask:
    """The task with its data. All local subsets are read, so that the revision does not depend on
    the chosen ones."""
    name = task.metadata.name
    local = [part for part in FEEDS[name].files if _has_files(name, part, where)]
    content = {part: FEEDS[name].read(part, where) for part in local}
    text = json.dumps(content, sort_keys=True, ensure_ascii=False)
    source = {**task.metadata.dataset, "revision": hashlib.sha256(text.encode()).hexdigest()[:16]}
    task.metadata = task.metadata.model_copy(update={"dataset": source})
    build = _retrieval if isinstance(task, AbsTaskRetrieval) else _rows
    built = {part: build(splits) for part, splits in content.items()}
    nested = isinstance(task, AbsTaskRetrieval) or task.metadata.is_multilingual
    task.dataset = built if nested else built["default"]
    task.hf_subsets, task.data_loaded = chosen, True
    return task


def _rows(splits: Splits) -> DatasetDict:
    return DatasetDict({name: Dataset.from_dict(rows) for name, rows in splits.items()})


def _retrieval(splits: Splits) -> dict[str, dict[str, Any]]:
    def texts(by_id: dict[str, str]) -> Dataset:
        return Dataset.from_dict({"id": list(by_id), "text": list(by_id.values())})

    return {
        name: {**split, "queries": texts(split["queries"]), "corpus": texts(split["corpus"])}
        for name, split in splits.items()
    }
