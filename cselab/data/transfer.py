"""SentEval's seven transfer tasks (classification) in a data folder; official counts checked."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from cselab.data.sources import data_folder, name_of, read_table
from cselab.errors import DataError, suggest

COUNTS = {
    "MR": {"": 10662},
    "CR": {"": 3775},
    "SUBJ": {"": 10000},
    "MPQA": {"": 10606},
    "SST2": {"train": 67349, "dev": 872, "test": 1821},
    "TREC": {"train": 5452, "test": 500},
    "MRPC": {"train": 4076, "test": 1725},
}
"""Rows by part; "" is a task without parts, scored by cross-validation."""
TRANSFER7 = ("MR", "CR", "SUBJ", "MPQA", "SST2", "TREC", "MRPC")


@dataclass(frozen=True)
class LabelledText:
    """Labelled texts of one part of a task.

    Attributes:
        texts: One list, or two for pairs of sentences (MRPC), n texts each.
        labels: (n,) strings.
    """

    texts: tuple[list[str], ...]
    labels: np.ndarray


def load_transfer(task: str | Path, folder: str | Path | None = None) -> dict[str, LabelledText]:
    """Load the parts of a task by name: {"": …}, {"train", "test"} or {"train", "dev", "test"}.

    Args:
        task: One of TRANSFER7.
        folder: A data folder (data/README.md); None: the variable CSELAB_DATA.

    Raises:
        DataError: For an unknown task, no data folder, a malformed file or a wrong count.
    """
    task = name_of(task)
    if task not in COUNTS:
        raise DataError(f"unknown transfer task {task!r}; {suggest(task, COUNTS)}")
    where = data_folder(folder)
    if where is None:
        raise DataError(
            f"no source for {task}; set data_dir or CSELAB_DATA to a folder with "
            f"transfer/{task.lower()}*.tsv.gz"
        )
    stem = where / "transfer" / task.lower()
    parts = {}
    for part, count in COUNTS[task].items():
        path = stem.with_name(f"{stem.name}{'-' if part else ''}{part}.tsv.gz")
        parts[part] = _read(path, count, pairs=task == "MRPC")
    return parts


def _read(path: Path, count: int, *, pairs: bool) -> LabelledText:
    columns = ("sentence1", "sentence2", "label") if pairs else ("text", "label")
    rows = [[row[name] for name in columns] for _, row in read_table(path, columns)]
    if len(rows) != count:
        raise DataError(
            f"{path} has {len(rows)} rows, officially it has {count}; get the official file"
        )
    *texts, labels = (list(column) for column in zip(*rows, strict=True))
    return LabelledText(tuple(texts), np.asarray(labels))
