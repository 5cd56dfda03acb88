"""The attention inspector's figure where no script runs: two maps, and the layers."""

from collections.abc import Sequence

import plotly.graph_objects as go
import torch
from plotly.subplots import make_subplots
from torch import Tensor

from cselab.analysis import CLASSES, context_energy, read_lengths, received_attention
from cselab.workbook.plots.theme import PALETTE
from cselab.workbook.widgets.reading import SHOWN, Reading
from cselab.workbook.widgets.widget import escape_label

COLOURS = (PALETTE[0], PALETTE[1], PALETTE[4], "#888888")  # of CLASSES


def attention_figure(
    sides: Sequence[tuple[str, Sequence[int], Reading]], layer: int, head: int, show: str
) -> go.Figure:
    """Maps of one layer and head of models A and B above shares and energy by layer.

    Args:
        sides: Name, cross-attention layers and reading of A and of B.
        layer: Number of the layer, from 1.
        head: Number of the head, from 1; 0 for the mean of all heads.
        show: A key of SHOWN.
    """
    figure = make_subplots(
        rows=2,
        cols=2,
        row_heights=[0.6, 0.4],
        vertical_spacing=0.2,
        horizontal_spacing=0.16,
        subplot_titles=[
            *(f"<b>{side}: {escape_label(s[0])}</b>" for side, s in zip("AB", sides, strict=True)),
            "attention received (A solid, B dashed)",
            "energy of [CLS]",
        ],
    )
    for column, (_, cael, reading) in enumerate(sides, 1):
        _plot_map(figure, column, map_cells(reading, cael, layer, head, show), reading.tokens)
        _plot_layers(figure, column, reading)
    figure.add_vline(x=layer, line=dict(color="#888", dash="dot"), row=2, col="all")
    unit = "weight" if show == "weights" else "length read"
    title = f"Layer {layer}, {f'head {head}' if head else 'mean of the heads'}: {SHOWN[show]}"
    return figure.update_layout(
        title=dict(text=title, y=0.98),
        height=900,
        coloraxis=dict(
            colorscale="Cividis", cmin=0, colorbar=dict(title=unit, len=0.5, y=1, yanchor="top")
        ),
        legend=dict(orientation="h", y=-0.08, yanchor="top", x=0),
        margin=dict(t=110, b=90, r=100),
    )


def map_cells(reading: Reading, cael: Sequence[int], layer: int, head: int, show: str) -> Tensor:
    """The cells (L, L) of a map, queries by keys.

    A layer without cross-attention reads the tower's own values.

    Args:
        reading: Reading of a sentence of L tokens.
        cael: Cross-attention layers of the twin, from 1.
        layer: Number of the layer, from 1.
        head: Number of the head, from 1; 0 for the mean of all heads.
        show: A key of SHOWN.
    """
    attention, values = reading.trace.attention, reading.trace.values
    if show == "other lengths" and layer in cael and reading.other_trace is not None:
        values = reading.other_trace.values
    if show != "weights":
        attention = read_lengths(attention, values)
    heads = attention[layer - 1, 0]
    return heads.mean(0) if head == 0 else heads[head - 1]


def _plot_map(figure: go.Figure, column: int, cells: Tensor, tokens: list[str]) -> None:
    labels = [escape_label(token) for token in tokens]
    names = [[f"{query} → {key}" for key in labels] for query in labels]
    figure.add_heatmap(
        z=cells.tolist(),
        coloraxis="coloraxis",
        text=names,
        hovertemplate="%{text}: %{z:.3f}<extra></extra>",
        row=1,
        col=column,
    )
    n = len(tokens)
    axis = dict(tickvals=list(range(n)), ticktext=labels, tickfont_size=14 if n <= 20 else 9)
    figure.update_xaxes(**axis, tickangle=-60, range=[-0.5, n - 0.5], row=1, col=column)
    figure.update_yaxes(**axis, range=[n - 0.5, -0.5], row=1, col=column)


def _plot_layers(figure: go.Figure, column: int, reading: Reading) -> None:
    """The share of each token class and the energy of [CLS], by layer."""
    attention = reading.trace.attention
    mask = torch.ones(1, attention.shape[-1], dtype=torch.long)
    received = received_attention(attention, mask)[:, 0]
    layers = list(range(1, len(attention) + 1))
    dash = ("solid", "dash")[column - 1]
    for number, name in enumerate(CLASSES):
        figure.add_scatter(
            x=layers,
            y=received[:, reading.classes == number].sum(1).tolist(),
            mode="lines+markers",
            name=name,
            legendgroup=name,
            showlegend=column == 1,
            line=dict(color=COLOURS[number], dash=dash),
            row=2,
            col=1,
        )
    figure.add_scatter(
        x=layers,
        y=context_energy(reading.trace.context, mask)[:, 0].tolist(),
        mode="lines+markers",
        name="AB"[column - 1],
        showlegend=False,
        line=dict(color="#888", dash=dash),
        row=2,
        col=2,
    )
    figure.update_xaxes(title="layer", dtick=1, row=2)
    figure.update_yaxes(title="share", range=[0, 1], row=2, col=1)
    figure.update_yaxes(title="‖h_cls‖ / ‖H‖_F", rangemode="tozero", row=2, col=2)
