"""Progress of a headless run: notebook, cell, elapsed and remaining time in one line."""

import sys
import time

from rich.live import Live
from rich.text import Text

from cselab.machine import clock


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
