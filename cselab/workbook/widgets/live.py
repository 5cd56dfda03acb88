"""A training as it runs: its loss terms, dev score, alignment and uniformity, and a stop button."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic
from typing import Any

import plotly.graph_objects as go
import traitlets
from ipykernel.connect import get_connection_file
from IPython.display import DisplayHandle

from cselab.errors import Interrupted
from cselab.experiments import Lab
from cselab.machine import clock
from cselab.workbook.widgets.figure import Panel, plain_figure
from cselab.workbook.widgets.widget import Widget, rounded

SECONDS_BETWEEN_UPDATES = 0.4
MOST_POINTS = 600  # of a curve; above, every second point is left out
GEOMETRY = ("dev", "uniformity", "alignment")


@dataclass
class Curve:
    """Points [step, value, ...] of the steps that `stride` divides."""

    points: list[list[Any]] = field(default_factory=list)
    stride: int = 1

    def add(self, step: int, values: Sequence[float]) -> None:
        """Add a point; thin them where there are too many."""
        if step % self.stride == 0:
            self.points.append([step, *(rounded(value, 5) for value in values)])
        if len(self.points) > MOST_POINTS:
            self.stride *= 2
            self.points = [point for point in self.points if point[0] % self.stride == 0]


@dataclass
class Training:
    """The curves of one training: `losses` in the order of `terms`, `evaluations` of `GEOMETRY`."""

    steps: int | None = None
    terms: list[str] = field(default_factory=list)
    losses: Curve = field(default_factory=Curve)
    evaluations: Curve = field(default_factory=Curve)
    first: tuple[int, float] | None = None

    def progress(self, step: int) -> str:
        """Say the step, and where they are known the speed and the time that is left."""
        first, began = self.first = self.first or (step, monotonic())
        text, seconds = f"step {step}" + f" of {self.steps}" * bool(self.steps), monotonic() - began
        if step == first or not seconds:
            return text
        speed = (step - first) / seconds
        left = f", {clock((self.steps - step) / speed)} left" if self.steps else ""
        return f"{text}, {speed:.3g} steps/s{left}"


class LiveTraining(Widget):
    """Show what a lab trains inside a `with` block, while it trains.

    Shows the loss terms of each step (of long trainings a sample), and at each evaluation the dev
    score, and alignment and uniformity of a fixed batch (https://arxiv.org/abs/2005.10242). Its
    stop button interrupts the kernel; the cell, run again, goes on from the last evaluation. A
    headless run shows the final state. A training that the lab has in its cache is not shown.

    In a notebook:

        with widgets.LiveTraining(lab):
            lab.train("simcse")
    """

    script = "live"
    dev_name = traitlets.Unicode().tag(sync=True)
    kernel_id = traitlets.Unicode().tag(sync=True)  # "" where no kernel can be interrupted
    running = traitlets.Bool(True).tag(sync=True)
    status = traitlets.Unicode().tag(sync=True)
    data = traitlets.Dict().tag(sync=True)  # of each training

    def __init__(self, lab: Lab):
        self.lab = lab
        self.trainings: dict[str, Training] = {}
        self.updated = 0.0
        self.shown = False
        self.figure: DisplayHandle | None = None
        super().__init__(dev_name=lab.data.dev_name)

    @traitlets.default("kernel_id")
    def _of_this_kernel(self) -> str:
        try:
            return Path(get_connection_file()).stem.removeprefix("kernel-")
        except RuntimeError:  # a plain Python
            return ""

    def started(self, name: str, steps: int) -> None:
        """Called by the trainer before the first step."""
        self.trainings.setdefault(name, Training()).steps = steps

    def step(self, name: str, number: int, terms: Mapping[str, float]) -> None:
        """Called by the trainer after each step, with the loss terms by name."""
        training = self.trainings.setdefault(name, Training())
        training.terms = training.terms or list(terms)
        training.losses.add(number, [terms[term] for term in training.terms])
        self._update(f"{name}: {training.progress(number)}")

    def evaluated(self, name: str, row: Mapping[str, float | int]) -> None:
        """Called by the trainer with each row of `FitResult.history`."""
        if row["step"] == 0:  # another training of this name: its seed, or another tower
            self.trainings[name] = Training(self.trainings.get(name, Training()).steps)
        training = self.trainings.setdefault(name, Training())
        training.evaluations.add(int(row["step"]), [row[part] for part in GEOMETRY])
        self._update(f"{name}: evaluated at step {row['step']}")

    def _update(self, status: str) -> None:
        if "CSELAB_RUN_DIR" in os.environ:
            return
        if self.shown and monotonic() - self.updated <= SECONDS_BETWEEN_UPDATES:
            return
        self.status, self.data = status, self._points()
        if not self.shown:
            self.shown, self.figure = True, self.display_with_figure()
        self.updated = monotonic()

    def _points(self) -> dict[str, Any]:
        return {
            name: {
                "place": place,
                "terms": training.terms,
                "losses": list(training.losses.points),  # a copy, or traitlets sees no change
                "evaluations": list(training.evaluations.points),
            }
            for place, (name, training) in enumerate(self.trainings.items())
        }

    def static(self) -> go.Figure:
        """Loss terms over the steps; dev score, alignment and uniformity at each evaluation."""
        losses, dev, path = {}, {}, {}
        for name, training in self.trainings.items():
            step, *values = zip(*training.losses.points, strict=True) if training.terms else [()]
            for term, y in zip(training.terms, values, strict=True):
                losses[f"{name}: {term}"] = (step, y)
            if training.evaluations.points:
                step, score, uniformity, alignment = zip(*training.evaluations.points, strict=True)
                dev[name], path[name] = (step, score), (uniformity, alignment)
        panels = {
            "loss terms": Panel("step", "loss", losses, "lines"),
            self.dev_name: Panel("step", "Spearman × 100", dev),
            "alignment over uniformity": Panel("uniformity", "alignment", path),
        }
        return plain_figure(panels)

    def __enter__(self) -> "LiveTraining":
        self.lab.cache.listener = self
        return self

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        self.lab.cache.listener = None
        if not self.trainings:
            return
        with self.hold_sync():
            self.data, self.running = self._points(), False
            self.status = _ending(error)
        if not self.shown:
            self._ipython_display_()
        elif self.figure is not None:
            self.figure.update(self.figure_output(), raw=True)


def _ending(error: BaseException | None) -> str:
    if error is None:
        return "finished"
    if isinstance(error, KeyboardInterrupt):
        where = str(error).split(";")[0] if isinstance(error, Interrupted) else "interrupted"
        return f"{where}; run the cell again to go on"
    return f"stopped by an error: {error}"
