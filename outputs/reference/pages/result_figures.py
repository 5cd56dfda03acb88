"""The figures of the results: the claims, and what costs grow with."""

import math

import plotly.graph_objects as go
from claim_tables import CLAIMS, GRIDS, HEADS, checked
from plotly.subplots import make_subplots
from speed_tables import benchmarks, sweep

from cselab.study.claims import MARGIN, VERDICTS, read_claims
from cselab.workbook.plots.figures import name_rows
from cselab.workbook.plots.theme import PALETTE, use_theme

EDGE = 4
"""Points beyond which a value is drawn at the edge."""
COLOURS = (PALETTE[0], PALETTE[2], "#8a8a8a", PALETTE[1], "#8a8a8a", "#8a8a8a")
LOOKS = dict(zip(VERDICTS[:-1], COLOURS, strict=True))
SYMBOLS = {"undecided": "circle-open", "equal": "square-open"}
PANELS = {
    "step over batch": ("sentences in a batch", "seconds a step"),
    "step over length": ("tokens of a sentence", "seconds a step"),
    "step over width": ("width of the states", "seconds a step"),
    "step over CAELs": ("CAELs of JTCSE (0: TNCSE)", "seconds a step"),
    "encoding over sentences": ("sentences encoded", "seconds"),
}
"""Figures of the benchmarks: what is on the two axes."""


def result_figures() -> dict[str, go.Figure]:
    """All figures by the names of their files."""
    use_theme()
    return {"growth": growth_figure(), "claims": claims_figure()}


def claims_figure() -> go.Figure:
    """Draw the claims of test scores: what the paper prints, and our difference with its interval,
    coloured by verdict."""
    claims = [claim for claim in read_claims(CLAIMS) if claim.measure == "test"]
    names = [claim.claim for claim in claims]
    titles = [HEADS[grid].replace(", ", ",<br>") for grid in GRIDS]
    figure = make_subplots(1, len(GRIDS), shared_yaxes=True, subplot_titles=titles)
    listed = set()

    def mark(x, y, name: str, marker: dict, **options) -> None:
        group = dict(name=name, legendgroup=name, showlegend=name not in listed)
        figure.add_scatter(x=x, y=y, mode="markers", marker=marker, **group, **options)
        listed.add(name)

    gaps = {row: claim.gap for row, claim in enumerate(claims) if claim.gap is not None}
    for column, grid in enumerate(GRIDS, 1):
        cell = {"row": 1, "col": column}
        rows = checked(grid).set_index("claim").reindex(names)
        for verdict, colour in LOOKS.items():
            shown = rows[rows.verdict == verdict]
            if shown.empty:
                continue
            x, low, high = (shown[side].clip(-EDGE, EDGE) for side in ("difference", "low", "high"))
            y = [names.index(claim) for claim in shown.index]
            look = dict(color=colour, size=8, symbol=SYMBOLS.get(verdict, "circle"))
            bars = dict(array=high - x, arrayminus=x - low, thickness=1.5, color=colour)
            mark(x, y, verdict, look, error_x=bars, **cell)
        x = [min(gap, EDGE) for gap in gaps.values()]
        look = dict(color="#000", symbol="line-ns-open", size=12)
        mark(x, list(gaps), "the paper's gap", look, **cell)
        figure.add_vrect(
            x0=-MARGIN, x1=MARGIN, fillcolor="#888", opacity=0.15, line_width=0, **cell
        )
    name_rows(figure, names)
    figure.update_xaxes(range=[-EDGE - 0.3, EDGE + 0.3], tickvals=list(range(-EDGE, EDGE + 1, 2)))
    left = dict(x=0.01, xref="container", yref="container")
    title = f"Points in a claim's direction; band: ±{MARGIN}; at the edge: {EDGE} or more"
    return figure.update_layout(
        title=dict(text=title, y=0.99, yanchor="top", **left),
        height=260 + 24 * len(names),
        width=560 + 190 * len(GRIDS),
        margin=dict(t=100, b=90),
        legend=dict(orientation="h", y=0.01, yanchor="bottom", **left),
    )


def growth_figure() -> go.Figure:
    """Draw each curve of benchmark k, and the time of a sweep over its workers.

    The dashed line has the time per FLOP of the middle point: a curve below it gets more out of
    the machine, one above it less.
    """
    titles = [name.replace("step over", "a step over") for name in PANELS]
    titles.append("a sweep over workers")
    figure = make_subplots(2, 3, subplot_titles=titles, vertical_spacing=0.2)
    for number, (name, axes) in enumerate(PANELS.items()):
        points = benchmarks()[name]["points"]
        times = [point["seconds"] for point in points.values()]
        middle = list(points.values())[len(points) // 2]
        by_flops = [
            point["gflop"] * middle["seconds"] / middle["gflop"] for point in points.values()
        ]
        sizes = [int(size) for size in points]
        _panel(figure, number, sizes, times, by_flops, axes, log="CAELs" not in name)
    times = {workers: best["runs"] for workers, (best, _) in sweep().items()}
    ideal = [times[1] / workers for workers in times]
    axes = ("workers", "seconds")
    _panel(figure, len(PANELS), list(times), list(times.values()), ideal, axes, log=False)
    legend = dict(orientation="h", y=1.08, yanchor="bottom", x=0)
    return figure.update_layout(height=640, width=1080, legend=legend, margin=dict(t=110))


def _panel(figure, number, x, measured, expected, axes, *, log) -> None:
    """Add one panel: measured times, and those expected."""
    row, column = divmod(number, 3)
    cell = {"row": row + 1, "col": column + 1}
    by_flops = "by FLOPs (workers: time of one / workers)"
    look = dict(mode="lines+markers", line=dict(color=PALETTE[0]))
    dashed = dict(mode="lines", line=dict(color="#666", dash="dash"))
    for name, y, style in (("measured", measured, look), (by_flops, expected, dashed)):
        figure.add_scatter(x=x, y=y, name=name, showlegend=number == 0, **style, **cell)
    kind = "log" if log else "linear"
    if log:  # a line at every doubling
        figure.update_yaxes(dtick=math.log10(2), tick0=-1, tickformat="~g", **cell)
    figure.update_xaxes(title_text=axes[0], type=kind, tickvals=x, ticktext=x, **cell)
    from_zero = {} if log else {"rangemode": "tozero"}
    figure.update_yaxes(title_text=axes[1], type=kind, **from_zero, **cell)
