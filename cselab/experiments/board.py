"""The live table of a sweep: runs that ended, scores so far, time left."""

import statistics
import sys
import time
from collections.abc import Sequence

from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from cselab.experiments.store import Result
from cselab.machine import clock


class Board:
    """Counts results as runs end.

    On a terminal it redraws a table in place; elsewhere it prints a line a run, and the table at
    the end.

    Args:
        labels: Labels of all runs, one each.
        workers: Number of runs at a time.
    """

    def __init__(self, labels: Sequence[str], workers: int):
        self.labels, self.workers = list(labels), workers
        self.console = Console(width=None if sys.stdout.isatty() else 140)
        self.results: list[Result] = []
        self.reused = 0
        self.started = time.monotonic()
        self._live = Live(
            console=self.console, get_renderable=self._draw, refresh_per_second=1, transient=True
        )

    def __enter__(self) -> "Board":
        if self.console.is_terminal:
            self._live.start()
        return self

    def __exit__(self, *error) -> None:
        if self.console.is_terminal:
            self._live.stop()
        self.console.print(self._draw())

    @property
    def failed(self) -> list[Result]:
        """Results with an error."""
        return [result for result in self.results if result.error]

    @property
    def finished(self) -> int:
        """Number of runs with scores."""
        return len(self.results) - len(self.failed)

    def add(self, result: Result, *, reused: bool = False) -> None:
        """Count the result of a run that ended, or that the store had."""
        self.results.append(result)
        self.reused += reused
        if reused or self.console.is_terminal:
            return
        scores = (("test", result.value("test", "average")), ("dev", result.value("dev")))
        shown = " ".join(f"{name} {value:.2f}" for name, value in scores if value is not None)
        outcome = f"FAILED: {result.error}" if result.error else shown or "done"
        line = f"[{len(self.results)}/{len(self.labels)}] {result.label}, seed {result.seed}: "
        line += f"{outcome} in {clock(result.seconds)}{self._time_left()}"
        self.console.print(line, markup=False, highlight=False, soft_wrap=True)

    def _time_left(self) -> str:
        done, left = len(self.results) - self.reused, len(self.labels) - len(self.results)
        seconds = time.monotonic() - self.started
        return f"; about {clock(seconds / done * left)} left" if done and left else ""

    def _draw(self) -> Group:
        table = Table("", box=None, pad_edge=False)
        for name in ("runs", "test", "± sd", "dev", "seconds a run"):
            table.add_column(name, justify="right")
        for label in dict.fromkeys(self.labels):
            results = [one for one in self.results if one.label == label and not one.error]
            values = [one.value("test", "average") for one in results]
            test = [value for value in values if value is not None]
            table.add_row(
                Text(label),
                f"{len(results)}/{self.labels.count(label)}",
                _mean(test),
                f"{statistics.stdev(test):.2f}" if len(test) > 1 else "–",
                _mean([one.value("dev") for one in results]),
                _mean([one.seconds for one in results], digits=0),
            )
        summary = f"{self.finished} of {len(self.labels)} runs"
        summary += f", {len(self.failed)} failed" if self.failed else ""
        summary += f", {self.reused} of them in the store before" if self.reused else ""
        elapsed = clock(time.monotonic() - self.started)
        summary += f", {self.workers} at a time, {elapsed}{self._time_left()}"
        failures = (f"FAILED {one.label}, seed {one.seed}: {one.error}" for one in self.failed)
        return Group(table, *map(Text, (*failures, summary)))


def _mean(values: Sequence[float | None], digits: int = 2) -> str:
    numbers = [value for value in values if value is not None]
    return f"{statistics.fmean(numbers):.{digits}f}" if numbers else "–"
