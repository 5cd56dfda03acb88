"""Progress of a headless run: notebook, cell, elapsed and remaining time in one line."""

import json
import sys
import time
from contextlib import suppress
from pathlib import Path

from pydantic import FiniteFloat, TypeAdapter
from rich.live import Live
from rich.text import Text

from cselab.machine import clock
from cselab.paths import replacing

SECONDS = TypeAdapter(dict[str, FiniteFloat])


class Durations:
    """Durations of earlier runs on this machine, by notebook and profile; none if damaged."""

    def __init__(self, path: Path):
        self.path = path
        try:
            self.seconds = SECONDS.validate_json(path.read_bytes())
        except (OSError, ValueError):
            self.seconds = {}

    def add(self, key: str, seconds: float) -> None:
        """Record a duration and write the file, if it can be written."""
        self.seconds[key] = round(seconds, 1)
        with suppress(OSError), replacing(self.path) as work:
            work.write_text(json.dumps(self.seconds, indent=1))


class LiveLine:
    """The line of one notebook: redrawn every second on a terminal, else printed at both ends.

    Args:
        expected: Seconds that it took before; None: unknown.
        live: Whether it is the only line, which may be redrawn.
    """

    def __init__(self, label: str, expected: float | None, *, live: bool = True):
        self.label, self.expected = label, expected
        self.cell = (0, 0)
        self.started = time.monotonic()
        self.live = live and sys.stdout.isatty()
        self._live = Live(
            get_renderable=lambda: Text(self.text()), refresh_per_second=1, transient=True
        )

    def __enter__(self) -> "LiveLine":
        if self.live:
            self._live.start()
        else:
            before = f"  (took {clock(self.expected)} before)" if self.expected else ""
            print(f"{self.label}{before}", flush=True)
        return self

    def on_cell(self, index: int, total: int) -> None:
        """Note that cell `index`, counted from 0, of `total` starts."""
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

    def close(self, outcome: str) -> None:
        """Print the outcome and the duration in the line's place."""
        self._live.stop()
        print(f"{self.label}  {outcome}  {clock(self.elapsed)}", flush=True)

    def __exit__(self, *error) -> None:
        self._live.stop()
