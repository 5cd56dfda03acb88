"""The figure of costs: measured time over what it grows with, beside the work in FLOPs."""

import math
from collections.abc import Mapping

import plotly.graph_objects as go
from plotly.subplots import make_subplots

from cselab.plots.theme import PALETTE

PANELS = {
    "step over batch": ("sentences in a batch", "seconds a step"),
    "step over length": ("tokens of a sentence", "seconds a step"),
    "step over width": ("width of the states", "seconds a step"),
    "step over CAELs": ("CAELs of JTCSE (0: TNCSE)", "seconds a step"),
    "encoding over sentences": ("sentences encoded", "seconds"),
}
"""Figures of the benchmarks: what is on the two axes."""


def growth_figure(figures: Mapping[str, dict], sweep: Mapping[int, tuple[dict, dict]]) -> go.Figure:
    """Draw each curve of benchmark k, and the time of a sweep over its workers.

    The dashed line has the time per FLOP of the middle point: a curve below it gets more out of
    the machine, one above it less.
    """
    titles = [name.replace("step over", "a step over") for name in PANELS]
    titles.append("a sweep over workers")
    figure = make_subplots(2, 3, subplot_titles=titles, vertical_spacing=0.2)
    for place, (name, (x, y)) in enumerate(PANELS.items()):
        points = figures[name]["points"]
        values = [int(value) for value in points]
        times = [point["seconds"] for point in points.values()]
        middle = list(points.values())[len(points) // 2]
        by_flops = [
            point["gflop"] * middle["seconds"] / middle["gflop"] for point in points.values()
        ]
        _panel(figure, place, values, times, by_flops, x, y, log="CAELs" not in name)
    best = {workers: times["runs"] for workers, (times, _) in sweep.items()}
    ideal = [best[1] / workers for workers in best]
    _panel(figure, 5, list(best), list(best.values()), ideal, "workers", "seconds", log=False)
    legend = dict(orientation="h", y=1.08, yanchor="bottom", x=0)
    return figure.update_layout(height=640, width=1080, legend=legend, margin=dict(t=110))


def _panel(figure, place, x, measured, expected, x_title, y_title, *, log) -> None:
    """One panel: measured times, and those expected."""
    row, column = place // 3 + 1, place % 3 + 1
    where = {"row": row, "col": column}
    by_flops = "by FLOPs (workers: time of one / workers)"
    look = dict(mode="lines+markers", line=dict(color=PALETTE[0]))
    dashed = dict(mode="lines", line=dict(color="#666", dash="dash"))
    for name, y, style in (("measured", measured, look), (by_flops, expected, dashed)):
        figure.add_scatter(x=x, y=y, name=name, showlegend=place == 0, **style, **where)
    kind = "log" if log else "linear"
    if log:  # a line at every doubling
        figure.update_yaxes(dtick=math.log10(2), tick0=-1, tickformat="~g", **where)
    figure.update_xaxes(title_text=x_title, type=kind, tickvals=x, ticktext=x, **where)
    from_zero = {} if log else {"rangemode": "tozero"}
    figure.update_yaxes(title_text=y_title, type=kind, **from_zero, **where)
