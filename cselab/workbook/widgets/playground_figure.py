"""A descent of points as a plain figure: before, after, and the curves between them."""

import itertools
from collections.abc import Sequence

import plotly.graph_objects as go
import torch

from cselab.workbook.plots.theme import PALETTE
from cselab.workbook.widgets.descent import Points, Row
from cselab.workbook.widgets.figure import Panel, plain_figure

MARKS = ("circle", "circle-open", "diamond", "diamond-open")
"""Of view a and view b, of the first and the second space."""


def before_and_after(start: Points, now: Points, history: Sequence[Row]) -> go.Figure:
    """Points as rays from the origin before and after, the weighted terms, and the mean lengths.

    Losses read directions and lengths: both panels of points have one range. Of points in space,
    the first two dimensions are drawn.
    """
    steps = [row["step"] for row in history]

    def curves(names: Sequence[str]) -> Panel:
        lines = {name: (steps, [row.get(name) for row in history]) for name in names}
        return Panel("step", "", lines, "lines")

    lengths = [name for name in history[0] if name.startswith("‖")]
    terms = dict.fromkeys(name for row in history for name in row)
    others = {"step", "alignment", "uniformity", *lengths}
    panels = {
        "before": _rays(start),
        f"after {steps[-1]} steps": _rays(now),
        "weighted terms": curves([name for name in terms if name not in others]),
        "mean length": curves(lengths),
    }
    figure = plain_figure(panels)
    everything = torch.cat([rows.flatten() for at in (start, now) for rows in at.values()])
    reach = 1.1 * everything.nan_to_num().abs().max().item()
    symbols = [mark for mark in MARKS for _ in range(3)]
    points = dict(size=len(MARKS) * [0, 10, 0], symbol=symbols)
    for axis in ("", "2"):
        look = dict(line_width=1, marker=points, showlegend=False)
        figure.update_traces(look, selector=dict(xaxis=f"x{axis}"))
        for name in (f"xaxis{axis}", f"yaxis{axis}"):
            figure.layout[name].range = [-reach, reach]
    drawn = [trace for trace in figure.data if trace.xaxis in ("x3", "x4")]
    for trace, colour in zip(drawn, itertools.cycle(PALETTE[:-1])):
        trace.line.color = colour  # black is no colour on a dark page
    figure.update_yaxes(rangemode="tozero", row=2)
    below = dict(orientation="h", y=-0.12, yanchor="top", x=0, xanchor="left")
    return figure.update_layout(legend=below, margin=dict(l=50, r=10, t=40))


def _rays(points: Points) -> Panel:
    """A line of a sentence: the origin, a point, and a gap, for each space and view."""
    lines = {}
    for n in range(len(next(iter(points.values()))[0])):
        ends = [row for views in points.values() for row in views[:, n].tolist()]
        x, y = ([c for end in ends for c in (0, end[axis], None)] for axis in range(2))
        lines[f"sentence {n + 1}"] = (x, y)
    return Panel("dimension 1", "", lines, square=True)
