"""A training as it runs: its loss terms, dev score, alignment and uniformity, and a stop button."""

import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic
from types import TracebackType
from typing import Any

import plotly.graph_objects as go
import traitlets
from ipykernel.connect import get_connection_file
from IPython.display import DisplayHandle
from plotly.subplots import make_subplots

from cselab.errors import Interrupted
from cselab.experiments import Lab
from cselab.workbook.plots.figures import DASHES
from cselab.workbook.plots.theme import PALETTE
from cselab.workbook.widgets.widget import Widget, escape_label, rounded

SECONDS_BETWEEN_UPDATES = 0.4
MOST_POINTS = 600
"""Of a curve: above, every second point is left out."""
GEOMETRY = ("dev", "uniformity", "alignment")


@dataclass
class Curve:
    """Points [step, value, ...] of rising steps, of which the browser has the first `sent`.

    Attributes:
        stride: Only steps that it divides are kept.
    """

    points: list[list[Any]] = field(default_factory=list)
    stride: int = 1
    sent: int = 0

    def add(self, step: int, values: Sequence[float]) -> None:
        """Add a point; thin them where there are too many."""
        if step % self.stride == 0:
            self.points.append([step, *(rounded(value, 5) for value in values)])
        if len(self.points) > MOST_POINTS:
            self.stride *= 2
            self.points = [point for point in self.points if point[0] % self.stride == 0]
            self.sent = 0

    def news(self) -> dict[str, Any]:
        """The points that the browser lacks, and where they begin."""
        start, self.sent = self.sent, len(self.points)
        return {"start": start, "points": self.points[start:]}


@dataclass
class Training:
    """What was heard of one training.

    Attributes:
        losses: Curve of its loss terms, in the order of `terms`.
        evaluations: `GEOMETRY`.
    """

    steps: int | None = None
    terms: list[str] = field(default_factory=list)
    losses: Curve = field(default_factory=Curve)
    evaluations: Curve = field(default_factory=Curve)
    first: tuple[int, float] | None = None

    def replaces(self) -> bool:
        """Whether points of the browser are to be replaced: of a new training, or thinned ones."""
        return any(curve.points and not curve.sent for curve in (self.losses, self.evaluations))

    def progress(self, step: int) -> str:
        """The step, and where they are known the speed and the time that is left."""
        first, began = self.first = self.first or (step, monotonic())
        text, seconds = f"step {step}", monotonic() - began
        if self.steps:
            text += f" of {self.steps}"
        if step == first or not seconds:
            return text
        speed = (step - first) / seconds
        text += f", {speed:.3g} steps/s"
        return f"{text}, {_duration((self.steps - step) / speed)} left" if self.steps else text


class LiveTraining(Widget):
    """Show what a lab trains inside a `with` block, while it trains.

    Shows the loss terms of each step (of long trainings a sample), and at each evaluation the dev
    score, and alignment and uniformity of a fixed batch (https://arxiv.org/abs/2005.10242). Its
    stop button interrupts the kernel; the cell, run again, goes on from the last evaluation. A run
    without a front-end shows the final state. What is found trained is not shown: nothing runs.

    Args:
        lab: Whose trainings are shown.

    In a notebook:

        with widgets.LiveTraining(lab):
            lab.train("simcse")
    """

    script = "live"
    dev_name = traitlets.Unicode().tag(sync=True)
    kernel_id = traitlets.Unicode().tag(sync=True)
    """Empty where no kernel can be interrupted."""
    running = traitlets.Bool(True).tag(sync=True)
    status = traitlets.Unicode().tag(sync=True)
    data = traitlets.Dict().tag(sync=True)
    """By training. It is complete at the end and at each doubling of the updates; in between, the
    browser adds the new points that it hears of."""

    def __init__(self, lab: Lab):
        self.lab = lab
        self.trainings: dict[str, Training] = {}
        self.updated = 0.0
        self.updates = 0
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
        """Called by the trainer before the first step.

        Args:
            name: Name of the training.
            steps: Number of steps.
        """
        self.trainings.setdefault(name, Training()).steps = steps

    def step(self, name: str, number: int, terms: Mapping[str, float]) -> None:
        """Called by the trainer after each step.

        Args:
            name: Name of the training.
            number: Number of the step.
            terms: Loss terms by name.
        """
        training = self.trainings.setdefault(name, Training())
        training.terms = training.terms or list(terms)
        training.losses.add(number, [terms[term] for term in training.terms])
        self._update(f"{name}: {training.progress(number)}")

    def evaluated(self, name: str, row: Mapping[str, float | int]) -> None:
        """Called by the trainer with each row of the history.

        Args:
            name: Name of the training.
            row: Row of `FitResult.history`.
        """
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
        self.status = status
        self._send_points()
        if not self.shown:
            self.shown, self.figure = True, self.display_with_figure()
        self.updated = monotonic()

    def _send_points(self) -> None:
        """Send what is new, or everything.

        A browser hears messages only once it has drawn the widget, and cannot say so while the
        kernel trains. What is kept in `data` always reaches it: so what it missed comes after at
        most the time that it was late.
        """
        self.updates += 1
        doubled = self.updates & (self.updates - 1) == 0
        if doubled or any(training.replaces() for training in self.trainings.values()):
            self.data = self._everything()
        else:
            self.send(self._news())

    def _news(self) -> dict[str, Any]:
        """By training, the points that the browser lacks."""
        return {
            name: {
                "place": place,
                "terms": training.terms,
                "losses": training.losses.news(),
                "evaluations": training.evaluations.news(),
            }
            for place, (name, training) in enumerate(self.trainings.items())
        }

    def _everything(self) -> dict[str, Any]:
        """By training, all points."""
        for training in self.trainings.values():
            training.losses.sent = training.evaluations.sent = 0
        return self._news()

    def static(self) -> go.Figure:
        """Loss terms over the steps; dev score, alignment and uniformity at each evaluation."""
        figure = make_subplots(
            rows=2,
            cols=2,
            specs=[[{"colspan": 2}, None], [{}, {}]],
            subplot_titles=("loss terms", escape_label(self.dev_name), "alignment over uniformity"),
            horizontal_spacing=0.14,
            vertical_spacing=0.2,
        )
        for place, (name, training) in enumerate(self.trainings.items()):
            name = escape_label(name)
            again, place = divmod(place, len(PALETTE))  # a colour comes again with other dashes
            colour = PALETTE[place]
            step, *losses = zip(*training.losses.points, strict=True) if training.terms else [()]
            for n, (term, y) in enumerate(zip(training.terms, losses, strict=True)):
                dash = DASHES[(n + again * len(training.terms)) % len(DASHES)]
                text = dict(name=f"{name}: {escape_label(term)}", mode="lines", showlegend=True)
                line = dict(color=colour, dash=dash)
                figure.add_scatter(x=step, y=y, line=line, **text, row=1, col=1)
            if not training.evaluations.points:
                continue
            step, dev, uniformity, alignment = zip(*training.evaluations.points, strict=True)
            line = dict(color=colour, dash=DASHES[again % len(DASHES)])
            marks = dict(mode="lines+markers", name=name, showlegend=False, line=line)
            figure.add_scatter(x=step, y=dev, **marks, row=2, col=1)
            figure.add_scatter(x=uniformity, y=alignment, **marks, row=2, col=2)
        figure.update_xaxes(title="step")
        figure.update_xaxes(title="uniformity", row=2, col=2)
        figure.update_yaxes(title="loss", row=1, col=1)
        figure.update_yaxes(title="Spearman × 100", row=2, col=1)
        figure.update_yaxes(title="alignment", row=2, col=2)
        top = 80 + 22 * math.ceil(sum(len(one.terms) for one in self.trainings.values()) / 3)
        legend = dict(yref="container", y=1, yanchor="top")
        return figure.update_layout(height=640 + top, legend=legend, margin=dict(t=top, b=60))

    def __enter__(self) -> "LiveTraining":
        self.lab.cache.listener = self
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.lab.cache.listener = None
        if not self.trainings:
            return
        with self.hold_sync():
            self.data, self.running = self._everything(), False
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


def _duration(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
