"""The figure of the claims: the papers' gaps beside our intervals."""

from collections.abc import Mapping, Sequence

import pandas
import plotly.graph_objects as go

from cselab.plots.figures import name_rows
from cselab.plots.theme import PALETTE
from cselab.reporting.claims import NO_RUNS, Claim

EDGE = 6
"""Points beyond which a value is drawn at the edge, with its number."""


def claims_figure(claims: Sequence[Claim], checked: Mapping[str, pandas.DataFrame]) -> go.Figure:
    """Draw the claims of test scores: what the paper prints, and our difference with its interval.

    checked: by kind of text, what `check_claims` gives.
    """
    claims = [claim for claim in claims if claim.measure == "test"]
    names, figure = [claim.claim for claim in claims], go.Figure()
    for place, ((text, found), colour) in enumerate(zip(checked.items(), PALETTE, strict=False)):
        shown = found[(found.measure == "test") & (found.verdict != NO_RUNS)]
        x = shown.difference.clip(-EDGE, EDGE)
        low, high = (shown[side].clip(-EDGE, EDGE) for side in ("low", "high"))
        figure.add_scatter(
            x=x,
            y=[names.index(claim) + 0.22 * place for claim in shown.claim],
            mode="markers+text",
            name=f"{text}: 95 % interval",
            text=_numbers(shown.difference),
            textposition="middle right",
            textfont=dict(color=colour),
            marker=dict(color=colour, size=8, symbol=("circle", "diamond")[place]),
            error_x=dict(array=high - x, arrayminus=x - low, thickness=1.5),
        )
    printed = {place: claim.gap for place, claim in enumerate(claims) if claim.gap is not None}
    figure.add_scatter(
        x=[min(gap, EDGE) for gap in printed.values()],
        y=[place + 0.1 for place in printed],
        mode="markers+text",
        name="the paper's gap",
        text=_numbers(printed.values()),
        textposition="middle right",
        marker=dict(color="#000", symbol="line-ns-open", size=14),
    )
    figure.add_vline(x=0, line=dict(color="#888", dash="dot"))
    name_rows(figure, names)
    figure.update_xaxes(range=[-EDGE - 0.3, EDGE + 2], tickvals=list(range(-EDGE, EDGE + 1)))
    return figure.update_layout(
        xaxis_title="points of Spearman × 100 in the direction of the claim",
        height=200 + 28 * len(names),
        width=1080,
    )


def _numbers(values) -> list[str]:
    return [f"→ {value:.1f}" if value > EDGE else "" for value in values]
