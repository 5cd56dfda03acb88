"""Progress of a headless run: notebook, cell, elapsed and remaining time in one line."""

import json
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import TextIO

from pydantic import FiniteFloat, TypeAdapter

from cselab.machine import clock
from cselab.paths import replacing

SECONDS = TypeAdapter(dict[str, FiniteFloat])


class Durations:
    """Durations of earlier runs on this machine, by notebook and profile; none if damaged.

    Args:
        path: Path of a JSON file.
    """

    def __init__(self, path: Path):
        self.path = path
        try:
            self.seconds = SECONDS.validate_json(path.read_bytes())
        except (OSError, ValueError):
            self.seconds = {}

    def add(self, key: str, seconds: float) -> None:
        """Record a duration and write the file, if it can be written.

        Args:
            key: Notebook and profile.
            seconds: The duration.
        """
        self.seconds[key] = round(seconds, 1)
        with suppress(OSError), replacing(self.path) as work:
            work.write_text(json.dumps(self.seconds, indent=1))


class LiveLine:
    """The line of one notebook.

    On a terminal it is redrawn every second; else it is printed at the start and at the end.

    Args:
        label: Label at the beginning of the line.
        expected: Seconds that it took before; None: unknown.
        stream: Where it is written; None: standard output.
        live: Whether it is the only line, which may be redrawn.
    """

    def __init__(
        self, label: str, expected: float | None, stream: TextIO | None = None, *, live: bool = True
    ):
        self.label = label
        self.expected = expected
        self.stream = stream or sys.stdout
        self.live = live and self.stream.isatty()
        self.cell = (0, 0)
        self.started = time.monotonic()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._redraw, daemon=True)

    def __enter__(self) -> "LiveLine":
        if self.live:
            self._thread.start()
        else:
            before = f"  (took {clock(self.expected)} before)" if self.expected else ""
            print(f"{self.label}{before}", file=self.stream, flush=True)
        return self

    def on_cell(self, index: int, total: int) -> None:
        """Note the cell that starts.

        Args:
            index: Number of the cell.
            total: Number of cells.
        """
        self.cell = (index + 1, total)

    @property
    def elapsed(self) -> float:
        """Seconds since the start."""
        return time.monotonic() - self.started

    def text(self) -> str:
        """The line: label, cell, elapsed and remaining time."""
        left = ""
        if self.expected:
            left = f"  about {clock(max(0, self.expected - self.elapsed))} left"
        return f"{self.label}  cell {self.cell[0]}/{self.cell[1]}  {clock(self.elapsed)}{left}"

    def _redraw(self) -> None:
        while not self._stop.wait(1):
            self.stream.write(f"\r\x1b[2K{self.text()}")
            self.stream.flush()

    def close(self, outcome: str) -> None:
        """Print the outcome and the duration."""
        self._stop.set()
        if self.live:
            self._thread.join()
            self.stream.write("\r\x1b[2K")
        print(f"{self.label}  {outcome}  {clock(self.elapsed)}", file=self.stream, flush=True)

    def __exit__(self, *error) -> None:
        self._stop.set()
