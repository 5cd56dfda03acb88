"""A plain figure of a widget's state, for a saved notebook that no kernel and no script draws."""

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import plotly.graph_objects as go
from plotly.subplots import make_subplots

from cselab.workbook.plots.figures import DASHES, VERTICAL, escape_label
from cselab.workbook.plots.theme import PALETTE


class Panel(NamedTuple):
    """Lines over two axes: (x values, y values) by name; `square`: both axes have one unit."""

    x: str
    y: str
    lines: Mapping[str, tuple[Sequence, Sequence]]
    mode: str = "lines+markers"
    square: bool = False


def plain_figure(panels: Mapping[str, Panel | go.Heatmap]) -> go.Figure:
    """Panels by title, two a row; a name has one colour and dash in all of them."""
    rows, columns = math.ceil(len(panels) / 2), min(2, len(panels))
    figure = make_subplots(
        rows=rows,
        cols=columns,
        subplot_titles=[escape_label(name) for name in panels],
        horizontal_spacing=0.14,
        vertical_spacing=0.4 / rows,
    )
    names: dict[str, int] = {}
    for number, panel in enumerate(panels.values()):
        where = dict(row=number // 2 + 1, col=number % 2 + 1)
        if isinstance(panel, go.Heatmap):
            figure.add_trace(panel, **where)
            figure.update_yaxes(autorange="reversed", **where)
            continue
        for name, (x, y) in panel.lines.items():
            again, colour = divmod(names.setdefault(name, len(names)), len(PALETTE))
            figure.add_scatter(
                x=x,
                y=y,
                mode=panel.mode,
                name=escape_label(name),
                legendgroup=name,
                showlegend=not any(trace.legendgroup == name for trace in figure.data),
                line=dict(color=PALETTE[colour], dash=DASHES[again % len(DASHES)]),
                **where,
            )
        anchor = figure.get_subplot(**where).yaxis.anchor if panel.square else None
        figure.update_xaxes(title=panel.x, **where)
        figure.update_yaxes(title=panel.y, scaleanchor=anchor, **where)
    return figure.update_layout(height=400 * rows + 60, margin=dict(t=60), legend=VERTICAL)
