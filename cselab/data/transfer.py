"""SentEval's seven transfer tasks (classification); official counts are checked."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from cselab.data.senteval_archive import ARCHIVE, transfer_rows
from cselab.data.sources import check_count, data_folder, find_file, parse_name, read_table
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


def load_transfer(
    task: str | Path, folder: str | Path | None = None, *, hub: bool = False
) -> dict[str, LabelledText]:
    """Load the parts of one of TRANSFER7: {"": …}, {"train", "test"} or {"train", "dev", "test"}.

    Args:
        folder: A data folder (data/README.md); None: the variable CSELAB_DATA.
        hub: Without a data folder, read SimCSE's archive of SentEval's data.

    Raises:
        DataError: For an unknown task, no data folder, a malformed file or a wrong count.
    """
    task = parse_name(task)
    if task not in COUNTS:
        raise DataError(f"unknown transfer task {task!r}; {suggest(task, COUNTS)}")
    columns = ("sentence1", "sentence2", "label") if task == "MRPC" else ("text", "label")
    if hub and not data_folder(folder):
        parts = transfer_rows(task)
        for part, count in COUNTS[task].items():
            check_count(f"{'/'.join(ARCHIVE)}, {task} {part}".strip(), len(parts[part]), count)
        return {part: _labelled(rows) for part, rows in parts.items()}
    found = {}
    for part, count in COUNTS[task].items():
        name = f"{task.lower()}-{part}".removesuffix("-")
        path = find_file(name, folder, "transfer/*.tsv.gz", kind="transfer file")
        rows = [tuple(row[name] for name in columns) for _, row in read_table(path, columns)]
        check_count(path, len(rows), count)
        found[part] = _labelled(rows)
    return found


def _labelled(rows: Sequence[tuple[str, ...]]) -> LabelledText:
    *texts, labels = (list(column) for column in zip(*rows, strict=True))
    return LabelledText(tuple(texts), np.asarray(labels))
