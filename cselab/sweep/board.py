"""The live table of a sweep: runs that ended, scores so far, time left."""

import statistics
import sys
import time
from collections.abc import Sequence
from typing import TextIO

from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from cselab.headless.progress import clock
from cselab.sweep.task import Job, Summary


class Board:
    """Counts runs as they end.

    On a terminal it redraws a table in place; elsewhere it prints a line a run, and the table at
    the end.

    Args:
        labels: Labels of all runs, one each.
        workers: How many runs go at a time.
        stream: Where it is written; None: standard output.
    """

    def __init__(self, labels: Sequence[str], workers: int, stream: TextIO | None = None):
        self.labels, self.workers = list(labels), workers
        self.console = Console(
            file=stream or sys.stdout, width=None if (stream or sys.stdout).isatty() else 140
        )
        self.summaries: dict[str, list[Summary]] = {label: [] for label in labels}
        self.failed: list[tuple[Job, Summary]] = []
        self.finished = self.reused = self.now = 0
        self.started = time.monotonic()
        self._live = Live(
            console=self.console, get_renderable=self._drawn, refresh_per_second=1, transient=True
        )

    def __enter__(self) -> "Board":
        if self.console.is_terminal:
            self._live.start()
        return self

    def __exit__(self, *error) -> None:
        if self.console.is_terminal:
            self._live.stop()
        self.console.print(self._drawn())

    def found(self, job: Job, summary: Summary) -> None:
        """Count a run that the store had.

        Args:
            job: The run.
            summary: Summary of its results.
        """
        self.summaries[job.label].append(summary)
        self.finished += 1
        self.reused += 1

    def ended(self, job: Job, summary: Summary) -> None:
        """Count a run of now, finished or failed.

        Args:
            job: The run.
            summary: Summary of its results.
        """
        self.now += 1
        if summary.error:
            self.failed.append((job, summary))
        else:
            self.finished += 1
            self.summaries[job.label].append(summary)
        if not self.console.is_terminal:
            how = f"FAILED: {summary.error}" if summary.error else _scores(summary)
            count = f"[{self.now + self.reused}/{len(self.labels)}]"
            line = f"{count} {job.label}, seed {job.seed}: {how} in {clock(summary.seconds)}"
            self.console.print(line + self._left(), markup=False, highlight=False, soft_wrap=True)

    def _left(self) -> str:
        left = len(self.labels) - self.reused - self.now
        if not left or not self.now:
            return ""
        return f"; about {clock((time.monotonic() - self.started) / self.now * left)} left"

    def _drawn(self) -> Group:
        table = Table(box=None, pad_edge=False)
        table.add_column("")
        for name in ("runs", "test", "± sd", "dev", "seconds a run"):
            table.add_column(name, justify="right")
        for label, found in self.summaries.items():
            test, dev = (
                [t for t in values if t is not None]
                for values in ([r.test for r in found], [r.dev for r in found])
            )
            cells = [
                f"{statistics.fmean(test):.2f}" if test else "–",
                f"{statistics.stdev(test):.2f}" if len(test) > 1 else "–",
            ]
            seconds = f"{statistics.fmean(r.seconds for r in found):.0f}" if found else "–"
            dev_cell = f"{statistics.fmean(dev):.2f}" if dev else "–"
            table.add_row(
                Text(label), f"{len(found)}/{self.labels.count(label)}", *cells, dev_cell, seconds
            )
        parts = [
            f"{self.finished} of {len(self.labels)} runs",
            f"{self.workers} at a time",
            clock(time.monotonic() - self.started),
        ]
        if self.reused:
            parts.insert(1, f"{self.reused} of them in the store before")
        if self.failed:
            parts.insert(1, f"{len(self.failed)} failed")
        failures = [
            Text(f"FAILED {job.label}, seed {job.seed}: {summary.error}")
            for job, summary in self.failed
        ]
        return Group(table, *failures, Text(", ".join(parts) + self._left()))


def _scores(summary: Summary) -> str:
    return (
        " ".join(
            f"{name} {value:.2f}"
            for name, value in (("test", summary.test), ("dev", summary.dev))
            if value is not None
        )
        or "done"
    )
