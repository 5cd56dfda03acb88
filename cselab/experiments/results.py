"""The file of a run's results: a JSON object a line."""

import json
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from filelock import FileLock

from cselab.seals import clear_access


def append_rows(path: Path, rows: Iterable[Mapping[str, Any]]) -> None:
    """Append rows to the file, whole and after the line of a writer that was killed.

    Methods and tasks are texts, also of numbers.
    """
    text = ""
    for row in rows:
        texts = {name: str(row[name]) for name in ("method", "task") if name in row}
        text += json.dumps({**row, **texts}, default=_plain) + "\n"
    with clear_access(path.parent), FileLock(f"{path}.lock"), path.open("a+b") as file:
        file.seek(max(file.seek(0, os.SEEK_END) - 1, 0))
        if file.read() not in (b"", b"\n"):
            text = "\n" + text
        file.write(text.encode())


def _plain(value: Any) -> Any:
    """A number of NumPy or torch as one of Python, anything else as its text."""
    return value.item() if getattr(value, "ndim", None) == 0 else str(value)
