"""The figure of the claims: the papers' gaps beside our intervals, a column a grid."""

import plotly.graph_objects as go
from claim_tables import CLAIMS, GRIDS, HEADS, checked
from plotly.subplots import make_subplots

from cselab.plots.figures import name_rows
from cselab.plots.theme import PALETTE
from cselab.reporting.claims import MARGIN, VERDICTS, read_claims

EDGE = 4
"""Points beyond which a value is drawn at the edge."""
COLOURS = (PALETTE[0], PALETTE[2], "#8a8a8a", PALETTE[1], "#8a8a8a", "#8a8a8a")
LOOKS = dict(zip(VERDICTS[:-1], COLOURS, strict=True))
SYMBOLS = {"undecided": "circle-open", "equal": "square-open"}


def claims_figure() -> go.Figure:
    """Draw the claims of test scores: what the paper prints, and our difference with its interval,
    coloured by verdict."""
    claims = [claim for claim in read_claims(CLAIMS) if claim.measure == "test"]
    names = [claim.claim for claim in claims]
    titles = [HEADS[grid].replace(", ", ",<br>") for grid in GRIDS]
    figure = make_subplots(1, len(GRIDS), shared_yaxes=True, subplot_titles=titles)
    listed = set()
    gaps = {place: claim.gap for place, claim in enumerate(claims) if claim.gap is not None}
    for column, grid in enumerate(GRIDS, 1):
        found = checked(grid).set_index("claim").reindex(names)
        for verdict, colour in LOOKS.items():
            shown = found[found.verdict == verdict]
            if shown.empty:
                continue
            x = shown.difference.clip(-EDGE, EDGE)
            low, high = (shown[side].clip(-EDGE, EDGE) for side in ("low", "high"))
            symbol = SYMBOLS.get(verdict, "circle")
            figure.add_scatter(
                x=x,
                y=[names.index(claim) for claim in shown.index],
                mode="markers",
                name=verdict,
                legendgroup=verdict,
                showlegend=verdict not in listed,
                marker=dict(color=colour, size=8, symbol=symbol),
                error_x=dict(array=high - x, arrayminus=x - low, thickness=1.5, color=colour),
                row=1,
                col=column,
            )
            listed.add(verdict)
        figure.add_scatter(
            x=[min(gap, EDGE) for gap in gaps.values()],
            y=list(gaps),
            mode="markers",
            name="the paper's gap",
            legendgroup="gap",
            showlegend=column == 1,
            marker=dict(color="#000", symbol="line-ns-open", size=12),
            row=1,
            col=column,
        )
        figure.add_vrect(
            x0=-MARGIN, x1=MARGIN, fillcolor="#888", opacity=0.15, line_width=0, row=1, col=column
        )
    name_rows(figure, names)
    figure.update_xaxes(range=[-EDGE - 0.3, EDGE + 0.3], tickvals=list(range(-EDGE, EDGE + 1, 2)))
    return figure.update_layout(
        title=dict(
            text=f"Points in a claim's direction; band: ±{MARGIN}; at the edge: {EDGE} or more",
            x=0.01,
            xref="container",
            y=0.99,
            yref="container",
            yanchor="top",
        ),
        height=260 + 24 * len(names),
        width=560 + 190 * len(GRIDS),
        margin=dict(t=100, b=90),
        legend=dict(
            orientation="h", x=0.01, xref="container", y=0.01, yref="container", yanchor="bottom"
        ),
    )
