"""Give mteb's tasks local data.

The revision of such a task is the fingerprint of its data, which mteb writes into the result file.
"""

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path

from datasets import Dataset, DatasetDict
from mteb.abstasks import AbsTask, AbsTaskRetrieval

from cselab.data.sources import data_folder
from cselab.evaluation.mteb_data import LOCAL_TASKS, Splits


def feed(
    tasks: Sequence[AbsTask], folder: str | Path | None = None
) -> tuple[list[AbsTask], list[str]]:
    """Give tasks their data, without the hub; subsets that have none are left out.

    Args:
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
    path, fed, lacking = data_folder(folder), [], []
    for task in tasks:
        name, on_hub = task.metadata.name, task.metadata.dataset["path"]
        files = LOCAL_TASKS[name].files if name in LOCAL_TASKS else {}
        local = [part for part, names in files.items() if _exist(names, path)]
        missing = [part for part in task.hf_subsets if part not in local]
        if missing:
            needed = sorted({file for part in missing for file in files.get(part, ())})
            more = f" and {len(needed) - 1} more files" if len(needed) > 1 else ""
            sources = [f"{needed[0]}{more} of a data folder"] if needed else []
            sources += [] if on_hub.startswith("cselab/") else [f"the hub ({on_hub}): --hub"]
            parts = f" ({', '.join(missing)})" if files and missing != ["default"] else ""
            lacking.append(f"{name}{parts} needs {' or '.join(sources)}")
        if len(missing) < len(task.hf_subsets):
            # all local subsets are read, so that the revision does not depend on the chosen ones
            content = {part: LOCAL_TASKS[name].read(part, path) for part in local}
            task.hf_subsets = [part for part in task.hf_subsets if part in local]
            fed.append(_fill(task, content))
    return fed, lacking


def _exist(files: Sequence[str], folder: Path | None) -> bool:
    return all(folder and (folder / file).exists() for file in files)


def _fill(task: AbsTask, content: dict[str, Splits]) -> AbsTask:
    """The task with its data, by subset, and their fingerprint as its revision."""
    text = json.dumps(content, sort_keys=True, ensure_ascii=False)
    source = {**task.metadata.dataset, "revision": hashlib.sha256(text.encode()).hexdigest()[:16]}
    task.metadata = task.metadata.model_copy(update={"dataset": source})
    retrieval = isinstance(task, AbsTaskRetrieval)
    built = {part: (_retrieval if retrieval else _rows)(splits) for part, splits in content.items()}
    nested = retrieval or task.metadata.is_multilingual
    task.dataset, task.data_loaded = built if nested else built["default"], True
    return task


def _rows(splits: Splits) -> DatasetDict:
    return DatasetDict({name: Dataset.from_dict(rows) for name, rows in splits.items()})


def _retrieval(splits: Splits) -> Splits:
    def texts(by_id: dict[str, str]) -> Dataset:
        return Dataset.from_dict({"id": list(by_id), "text": list(by_id.values())})

    return {
        name: {**split, "queries": texts(split["queries"]), "corpus": texts(split["corpus"])}
        for name, split in splits.items()
    }
