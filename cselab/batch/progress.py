"""A live line: which notebook, which cell, how long, how much longer."""

import json
import sys
import threading
import time
from pathlib import Path
from typing import TextIO


def clock(seconds: float) -> str:
    """`0:07`, `12:30`, `1:02:03`."""
    minutes, seconds = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{seconds:02}" if hours else f"{minutes}:{seconds:02}"


class Durations:
    """Seconds that each notebook took on this machine before, by notebook and profile, in one small file."""

    def __init__(self, path: Path):
        self.path = path
        try:
            self.seconds: dict[str, float] = json.loads(path.read_text())
        except (OSError, ValueError):
            self.seconds = {}

    def add(self, key: str, seconds: float) -> None:
        self.seconds[key] = round(seconds, 1)
        self.path.write_text(json.dumps(self.seconds, indent=1))


class LiveLine:
    """One notebook's line: redrawn every second on a terminal, if it is the only one (`live`); printed at start and end elsewhere."""

    def __init__(self, label: str, expected: float | None, stream: TextIO | None = None, *, live: bool = True):
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
            print(
                f"{self.label}{f'  (took {clock(self.expected)} before)' if self.expected else ''}",
                file=self.stream,
                flush=True,
            )
        return self

    def on_cell(self, index: int, total: int) -> None:
        self.cell = (index + 1, total)

    @property
    def elapsed(self) -> float:
        return time.monotonic() - self.started

    def text(self) -> str:
        left = f"  about {clock(max(0, self.expected - self.elapsed))} left" if self.expected else ""
        return f"{self.label}  cell {self.cell[0]}/{self.cell[1]}  {clock(self.elapsed)}{left}"

    def _redraw(self) -> None:
        while not self._stop.wait(1):
            self.stream.write(f"\r\x1b[2K{self.text()}")
            self.stream.flush()

    def close(self, outcome: str) -> None:
        self._stop.set()
        if self.live:
            self._thread.join()
            self.stream.write("\r\x1b[2K")
        print(f"{self.label}  {outcome}  {clock(self.elapsed)}", file=self.stream, flush=True)

    def __exit__(self, *error) -> None:
        self._stop.set()
