"""A training as it runs: its loss terms, dev score, alignment and uniformity, and a stop button."""

import itertools
import os
import time
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType

import anywidget
import ipywidgets as widgets
import plotly.graph_objects as go
import traitlets
from ipykernel.connect import get_connection_file
from IPython.display import display
from plotly.subplots import make_subplots

from cselab.experiments import Lab
from cselab.plots.figures import DASHES
from cselab.plots.theme import PALETTE
from cselab.widgets.widget import FigureApp

SECONDS_BETWEEN_DRAWINGS = 0.5


class InterruptButton(anywidget.AnyWidget):
    """A button that interrupts this kernel, in JupyterLab."""

    _esm = Path(__file__).with_name("interrupt.js")
    kernel_id = traitlets.Unicode().tag(sync=True)

    @traitlets.default("kernel_id")
    def _of_this_kernel(self) -> str:
        return Path(get_connection_file()).stem.removeprefix("kernel-")


class LiveTraining(FigureApp):
    """Show what a lab trains inside a `with` block, while it trains.

    Its stop button interrupts the kernel; the cell, run again, goes on from the last evaluation. A
    run without a front-end shows the final figure. What is found trained is not shown: nothing
    runs.

    >>> with LiveTraining(lab):  # doctest: +SKIP
    ...     tower = lab.train("simcse")
    """

    def __init__(self, lab: Lab):
        self.lab, self.controls = lab, {}
        self.terms: dict[str, dict[int, Mapping[str, float]]] = {}
        self.rows: dict[str, dict[int, Mapping[str, float]]] = {}
        self.drawn = 0.0
        self.live: go.FigureWidget | None = None
        self.box: widgets.VBox | None = None

    def step(self, name: str, number: int, terms: Mapping[str, float]) -> None:
        """Called by the trainer after each step."""
        self.terms.setdefault(name, {})[number] = terms
        self._draw()

    def evaluated(self, name: str, row: Mapping[str, float | int]) -> None:
        """Called by the trainer with each row of the history."""
        if row["step"] == 0:  # another training of this name: its seed, or another tower
            self.rows.pop(name, None)
            self.terms.pop(name, None)
        self.rows.setdefault(name, {})[int(row["step"])] = row
        self._draw()

    def _draw(self) -> None:
        if self.box is None and "CSELAB_RUN_DIR" not in os.environ:
            display(self.widget())
        if self.live is not None and time.monotonic() - self.drawn > SECONDS_BETWEEN_DRAWINGS:
            self.redraw()
            self.drawn = time.monotonic()

    def figure(self) -> go.Figure:
        """Loss terms at each step; dev score, and the way through alignment and uniformity, at each
        evaluation."""
        titles = ("loss terms", self.lab.dev_name, "alignment over uniformity")
        figure = make_subplots(cols=3, subplot_titles=titles, horizontal_spacing=0.12)
        for colour, name in zip(PALETTE, self.rows, strict=False):
            look = dict(legendgroup=name, line=dict(color=colour))
            steps = self.terms.get(name, {})
            of = list(next(iter(steps.values()), {}))
            for dash, term in zip(itertools.cycle(DASHES), of, strict=False):
                y = [terms[term] for terms in steps.values()]
                line = dict(color=colour, dash=dash)
                text = dict(name=f"{name}: {term}", mode="lines")
                figure.add_scatter(x=list(steps), y=y, line=line, **text, row=1, col=1)
            rows = list(self.rows[name].values())
            marks = dict(mode="lines+markers", name=name, showlegend=False, **look)
            step, dev = [row["step"] for row in rows], [row["dev"] for row in rows]
            figure.add_scatter(x=step, y=dev, **marks, row=1, col=2)
            x, y = [row["uniformity"] for row in rows], [row["alignment"] for row in rows]
            figure.add_scatter(x=x, y=y, **marks, row=1, col=3)
        figure.update_xaxes(title="step", col=1)
        figure.update_xaxes(title="step", col=2)
        figure.update_xaxes(title="uniformity", col=3)
        figure.update_yaxes(title="Spearman × 100", col=2)
        legend = dict(orientation="h", y=-0.3, yanchor="top")
        return figure.update_layout(height=420, legend=legend, margin=dict(b=110))

    def widget(self) -> widgets.Widget:
        """The live figure under its stop button."""
        self.box = widgets.VBox([InterruptButton(), super().widget()])
        return self.box

    def __enter__(self) -> "LiveTraining":
        self.lab.workspace.listener = self
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.lab.workspace.listener = None
        if self.box is not None:
            self.redraw()
            self.box.children = self.box.children[1:]  # nothing is left to stop
        elif self.rows:
            display(self.static())
