"""The run comparer: finished trainings side by side, with what the difference between them is worth."""

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

import ipywidgets as widgets
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from cselab.evaluation import StsReport, compare_pairs
from cselab.views.theme import PALETTE
from cselab.views.view import View, shown


class Run(NamedTuple):
    """history: `FitResult.history`. report: scores on the tests. phenomena: Spearman x100 by what was changed in the world's pairs."""

    history: Sequence[Mapping[str, float]]
    report: StsReport
    phenomena: Mapping[str, float]


class RunComparer(View):
    """Curves of the dev score, scores by phenomenon, and each test's difference from a baseline with its paired bootstrap interval.

    runs: what opens a run, by name; a run is opened when it is picked. At most 7 are drawn.
    """

    def __init__(self, runs: Mapping[str, Callable[[], Run]]):
        names = list(runs)
        self.run = lru_cache(maxsize=None)(lambda name: runs[name]())
        self.difference = lru_cache(maxsize=None)(self._difference)
        rows = min(8, len(names))
        self.controls = {
            "picked": widgets.SelectMultiple(
                options=names, value=names[:2], description="runs", rows=rows, layout=widgets.Layout(width="55%")
            ),
            "baseline": widgets.Dropdown(options=names, description="baseline"),
        }

    def _difference(self, name: str, baseline: str, task: str):
        return compare_pairs(self.run(name).report.tasks[task], self.run(baseline).report.tasks[task], resamples=500)

    def figure(self, *, picked: Sequence[str], baseline: str) -> go.Figure:
        figure = make_subplots(
            rows=2, cols=2, specs=[[{}, {}], [{"colspan": 2}, None]], vertical_spacing=0.17, horizontal_spacing=0.12,
            subplot_titles=["dev score", "test score less the baseline's", "by phenomenon"],
        )  # fmt: skip
        for number, (colour, name) in enumerate(zip(PALETTE, picked, strict=False)):
            history, report, phenomena = self.run(name)
            look = dict(name=shown(name), legendgroup=name)
            figure.add_scatter(
                x=[mark["step"] for mark in history], y=[mark["dev"] for mark in history], mode="lines+markers",
                line_color=colour, row=1, col=1, **look,
            )  # fmt: skip
            figure.add_bar(
                x=list(phenomena),
                y=list(phenomena.values()),
                marker_color=colour,
                showlegend=False,
                row=2,
                col=1,
                **look,
            )
            tasks = [task for task in report.tasks if task in self.run(baseline).report.tasks]
            if name == baseline or not tasks:
                continue
            found = [self.difference(name, baseline, task) for task in tasks]
            figure.add_scatter(
                x=[place + 0.1 * number for place in range(len(tasks))], y=[one.difference for one in found],
                mode="markers", marker=dict(color=colour, size=9), showlegend=False,
                error_y=dict(
                    array=[one.high - one.difference for one in found], arrayminus=[one.difference - one.low for one in found]
                ),
                row=1, col=2, **look,
            )  # fmt: skip
        tests = list(self.run(baseline).report.tasks)
        figure.update_xaxes(tickvals=list(range(len(tests))), ticktext=tests, range=[-0.5, len(tests)], row=1, col=2)
        figure.add_hline(y=0, line=dict(color="#888", dash="dot"), row=1, col=2)
        figure.update_xaxes(title="step", row=1, col=1)
        figure.update_yaxes(title="Spearman × 100", row=1, col=1).update_yaxes(title="Spearman × 100", row=2, col=1)
        figure.update_yaxes(title="points, 95 % interval", row=1, col=2)
        return figure.update_layout(
            height=760,
            barmode="group",
            legend=dict(y=-0.16, yanchor="top"),
            margin=dict(t=60, b=110),
        )
