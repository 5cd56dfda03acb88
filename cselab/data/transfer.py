"""SentEval's seven transfer tasks (classification) in a data folder; official counts checked."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from cselab.data.sources import check_count, find_file, parse_name, read_table
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
    """Texts of one part of a task, two lists for pairs (MRPC), and labels, (n,) strings."""

    texts: tuple[list[str], ...]
    labels: np.ndarray


def load_transfer(task: str | Path, folder: str | Path | None = None) -> dict[str, LabelledText]:
    """Load the parts of one of TRANSFER7: {"": …}, {"train", "test"} or {"train", "dev", "test"}.

    Raises:
        DataError: For an unknown task, no data folder, a malformed file or a wrong count.
    """
    task = parse_name(task)
    if task not in COUNTS:
        raise DataError(f"unknown transfer task {task!r}; {suggest(task, COUNTS)}")
    columns = ("sentence1", "sentence2", "label") if task == "MRPC" else ("text", "label")
    parts = {}
    for part, count in COUNTS[task].items():
        name = f"{task.lower()}-{part}".removesuffix("-")
        path = find_file(name, folder, "transfer/*.tsv.gz", kind="transfer file")
        rows = [[row[name] for name in columns] for _, row in read_table(path, columns)]
        check_count(path, len(rows), count)
        *texts, labels = (list(column) for column in zip(*rows, strict=True))
        parts[part] = LabelledText(tuple(texts), np.asarray(labels))
    return parts
