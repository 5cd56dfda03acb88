"""The loss playground where no script runs: points before and after their descent."""

import itertools

import plotly.graph_objects as go
import torch
from plotly.subplots import make_subplots
from torch import Tensor

from cselab.workbook.plots.theme import PALETTE
from cselab.workbook.widgets.descent import Descent, Points, thinned
from cselab.workbook.widgets.widget import escape_label

SYMBOLS = ("circle", "diamond")
HEIGHT, ABOVE = 720, 104  # pixels, without the legends; of them the titles
STEPS = 150
"""Steps of a descent that nobody has begun."""


def before_and_after(descent: Descent) -> go.Figure:
    """Points at the start and now, the loss terms and the mean lengths over the steps.

    Where there are no steps yet, 150 are taken on a copy.
    """
    tried = len(descent.history) == 1
    if tried:
        descent = descent.descended(STEPS)
    steps = len(descent.history) - 1
    flat = next(iter(descent.points.values())).shape[-1] == 2
    space = {} if flat else {"type": "scene"}
    figure = make_subplots(
        rows=2,
        cols=2,
        specs=[[space, space], [{}, {}]],
        row_heights=[0.58, 0.42],
        vertical_spacing=0.14,
        subplot_titles=["before", f"after {steps} steps", "weighted terms", "mean length"],
    )
    reach = 1.1 * max(
        x.abs().max().item() for p in (descent.trail[0], descent.points) for x in p.values()
    )
    _plot_points(figure, descent.trail[0], [], 1, reach)
    _plot_points(figure, descent.points, _trails(descent), 2, reach)
    _plot_rows(figure, descent.history, [*descent.method.terms], 1)
    lengths = [f"‖{name}‖" for name in descent.points]
    _plot_rows(figure, descent.history, lengths, 2)
    found = [row[name] for row in descent.history for name in lengths if name in row]
    # noise of the last digit, as on the sphere, is not drawn as a change
    low, high = min(found) - 0.02 * max(found), max(found) * 1.02
    figure.update_yaxes(range=[low, high], row=2, col=2)
    lines = max(len(descent.method.terms), len(descent.points))
    colours = "colours: sentences; filled: view a, open: view b"
    if len(descent.points) > 1:
        colours += "<br>circles: tower I, diamonds: tower II"
    title = f"Points before and after {steps} steps" + (", tried on a copy" if tried else "")
    below = 70 + 21 * lines
    return figure.update_layout(
        title=dict(
            text=f"{title}<br><sup>{colours}</sup>",
            font_size=15,
            yref="container",
            y=0.985,
            yanchor="top",
        ),
        height=HEIGHT + below,
        margin=dict(l=64, r=20, t=ABOVE, b=below),
    )


def _plot_points(
    figure: go.Figure, points: Points, trails: list[Tensor], column: int, reach: float
) -> None:
    size = next(iter(points.values())).shape[-1]
    axes, add = "xyz"[:size], figure.add_scatter if size == 2 else figure.add_scatter3d
    where = dict(row=1, col=column, showlegend=False)
    pairs = [rows[:, n] for rows in points.values() for n in range(rows.shape[1])]
    for name, lines, dash in (("positives", pairs, "solid"), ("trails", trails, "dot")):
        rows = [row for line in lines for row in [*line.tolist(), [None] * size]]
        by_axis = zip(*rows, strict=True) if rows else [()] * size
        coordinates = {axis: list(x) for axis, x in zip(axes, by_axis, strict=True)}
        line = dict(color="#999", width=1, dash=dash)
        add(**coordinates, mode="lines", name=name, line=line, hoverinfo="skip", **where)
    for (space, rows), symbol in zip(points.items(), itertools.cycle(SYMBOLS), strict=False):
        for view in range(2):
            add(
                **dict(zip(axes, rows[view].T.tolist(), strict=True)),
                mode="markers",
                name=f"{space}, view {'ab'[view]}",
                hovertext=[f"sentence {n + 1}" for n in range(rows.shape[1])],
                marker=dict(
                    symbol=symbol + ("-open" if view else ""),
                    size=12 if size == 2 else 5,
                    color=PALETTE[: rows.shape[1]],
                ),
                **where,
            )
    limits = [-reach, reach]
    if size == 2:
        top = dict(constrain="domain", constraintoward="top")
        y = figure.get_subplot(1, column).xaxis.plotly_name.replace("axis", "")
        figure.update_xaxes(range=limits, constrain="domain", row=1, col=column)
        figure.update_yaxes(range=limits, scaleanchor=y, **top, row=1, col=column)
        return
    figure.update_scenes(
        aspectmode="cube",
        **{f"{axis}axis": dict(range=limits, title=f"dim. {n + 1}") for n, axis in enumerate(axes)},
        row=1,
        col=column,
    )


def _trails(descent: Descent) -> list[Tensor]:
    """The way of each point, (steps, size)."""
    some = thinned(descent.trail, 60)
    ways = [torch.stack([points[space] for points in some]) for space in descent.points]
    return [way[:, v, n] for way in ways for v in range(2) for n in range(way.shape[2])]


def _plot_rows(figure: go.Figure, history: list[dict], names: list[str], column: int) -> None:
    """Plot values over the steps, with their legend below the panel."""
    legend = f"legend{column + 1}"
    for n, name in enumerate(names):
        figure.add_scatter(
            x=[row["step"] for row in history],
            y=[row.get(name) for row in history],
            name=escape_label(name),
            line=dict(color=PALETTE[n % len(PALETTE)], dash="dash" if n >= len(PALETTE) else None),
            legend=legend,
            mode="lines",
            row=2,
            col=column,
        )
    figure.update_xaxes(title=dict(text="step", standoff=4, font_size=13), row=2, col=column)
    x = figure.get_subplot(2, column).xaxis.domain[0]
    place = dict(x=x, y=-58 / (HEIGHT - ABOVE), xanchor="left", yanchor="top", orientation="v")
    figure.update_layout({legend: place})
