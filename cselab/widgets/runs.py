"""Run comparer: finished trainings side by side, with bootstrap intervals of their differences."""

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache

import ipywidgets as widgets
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from cselab.evaluation import compare_pairs
from cselab.experiments.finished import FinishedRun
from cselab.plots.theme import PALETTE
from cselab.widgets.widget import FigureApp, escape_label


class RunComparer(FigureApp):
    """Compare finished runs: dev curves, scores by phenomenon, and differences from a baseline.

    Each difference of a test score has a paired bootstrap interval.

    runs: functions that open a run, by name; called when a run is selected. At most 7 are shown.
    """

    def __init__(self, runs: Mapping[str, Callable[[], FinishedRun]]):
        names = list(runs)
        self.run = lru_cache(maxsize=None)(lambda name: runs[name]())
        self.difference = lru_cache(maxsize=None)(self._difference)
        rows = min(8, len(names))
        self.controls = {
            "picked": widgets.SelectMultiple(
                options=names,
                value=names[:2],
                description="runs",
                rows=rows,
                layout=widgets.Layout(width="55%"),
            ),
            "baseline": widgets.Dropdown(options=names, description="baseline"),
        }

    def _difference(self, name: str, baseline: str, task: str):
        scores, reference = self.run(name).report.tasks, self.run(baseline).report.tasks
        return compare_pairs(scores[task], reference[task], resamples=500)

    def figure(self, *, picked: Sequence[str], baseline: str) -> go.Figure:
        """The figure for these values of the controls."""
        figure = make_subplots(
            rows=2,
            cols=2,
            specs=[[{}, {}], [{"colspan": 2}, None]],
            vertical_spacing=0.17,
            horizontal_spacing=0.12,
            subplot_titles=["dev score", "test score minus the baseline's", "by phenomenon"],
        )
        for number, (colour, name) in enumerate(zip(PALETTE, picked, strict=False)):
            history, report, phenomena = self.run(name)
            style = dict(name=escape_label(name), legendgroup=name)
            figure.add_scatter(
                x=[row["step"] for row in history],
                y=[row["dev"] for row in history],
                mode="lines+markers",
                line_color=colour,
                row=1,
                col=1,
                **style,
            )
            figure.add_bar(
                x=list(phenomena),
                y=list(phenomena.values()),
                marker_color=colour,
                showlegend=False,
                row=2,
                col=1,
                **style,
            )
            tasks = [task for task in report.tasks if task in self.run(baseline).report.tasks]
            if name == baseline or not tasks:
                continue
            compared = [self.difference(name, baseline, task) for task in tasks]
            figure.add_scatter(
                x=[place + 0.1 * number for place in range(len(tasks))],
                y=[c.difference for c in compared],
                mode="markers",
                marker=dict(color=colour, size=9),
                showlegend=False,
                error_y=dict(
                    array=[c.high - c.difference for c in compared],
                    arrayminus=[c.difference - c.low for c in compared],
                ),
                row=1,
                col=2,
                **style,
            )
        tests = list(self.run(baseline).report.tasks)
        figure.update_xaxes(
            tickvals=list(range(len(tests))), ticktext=tests, range=[-0.5, len(tests)], row=1, col=2
        )
        figure.add_hline(y=0, line=dict(color="#888", dash="dot"), row=1, col=2)
        figure.update_xaxes(title="step", row=1, col=1)
        figure.update_yaxes(title="Spearman × 100", col=1)
        figure.update_yaxes(title="points, 95 % interval", row=1, col=2)
        return figure.update_layout(
            height=760,
            barmode="group",
            legend=dict(y=-0.16, yanchor="top"),
            margin=dict(t=60, b=110),
        )
