"""Attention inspector: the attention of two models on a sentence, by layer and head."""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

import ipywidgets as widgets
import plotly.graph_objects as go
import torch
from plotly.subplots import make_subplots
from torch import Tensor

from cselab.analysis import (
    CLASSES,
    Trace,
    context_energy,
    read_lengths,
    received_attention,
    token_classes,
    trace,
)
from cselab.models import SentenceEncoder, TwinEncoder
from cselab.plots.theme import PALETTE
from cselab.widgets.streams import Stream, streams
from cselab.widgets.widget import LABEL, FigureApp, escape_label

COLOURS = (PALETTE[0], PALETTE[1], PALETTE[4], "#999999")  # of CLASSES
WEIGHTS = "attention weights"
LENGTHS = "weight × length of the value"
CROSS_LENGTHS = "weight × length of the other tower's value"
"""Quantities that the attention map can show."""
LONGEST = 48
"""Tokens of a sentence; a map of more is not legible."""


class Reading(NamedTuple):
    """A tower's trace of a sentence, and the trace of the other tower of its twin."""

    tokens: list[str]
    classes: Tensor
    trace: Trace
    other_trace: Trace | None

    @property
    def axis(self) -> dict:
        """Tick marks of an axis of tokens."""
        labels = [escape_label(token) for token in self.tokens]
        return dict(tickvals=list(range(len(self.tokens))), ticktext=labels)


class AttentionInspector(FigureApp):
    """Compare two models on one sentence, or on a pair of sentences.

    Shows the attention map, the attention that each token receives, and by layer the share of each
    token class and the energy of [CLS].

    encoders: models by name, of equal depth and number of heads, on any device; a twin is shown as
        its two towers.
    sentence: the first sentence.
    pairs: pairs of sentences to choose from.
    """

    def __init__(
        self,
        encoders: Mapping[str, SentenceEncoder | TwinEncoder],
        sentence: str,
        pairs: Sequence[tuple[str, str]] = (),
    ):
        self.streams = streams(encoders)
        names = list(self.streams)
        config = self.streams[names[0]].tower.config
        self.read = lru_cache(maxsize=64)(self._read)
        options = [("a pair of sentences …", ()), *((f"{a}  |  {b}", (a, b)) for a, b in pairs)]
        self.pick = widgets.Dropdown(options=options, description="pick")
        self.pick.observe(self._on_pick, names="value")
        heads = [("mean", 0), *((str(h), h) for h in range(1, config.num_attention_heads + 1))]
        self.controls = {
            "sentence": _text(sentence, "sentence"),
            "second": _text("", "second (empty: the same)"),
            "model_a": widgets.Dropdown(options=names, description="model A"),
            "model_b": widgets.Dropdown(options=names, value=names[-1], description="model B"),
            "layer": widgets.IntSlider(
                config.num_hidden_layers, 1, config.num_hidden_layers, description="layer"
            ),
            "head": widgets.Dropdown(options=heads, description="head"),
            "show": widgets.Dropdown(options=[WEIGHTS, LENGTHS, CROSS_LENGTHS], description="show"),
        }

    def widget(self) -> widgets.Widget:
        """Controls and figure; with pairs, also a menu of them."""
        box = super().widget()
        return widgets.VBox([self.pick, *box.children]) if len(self.pick.options) > 1 else box

    def _on_pick(self, change: dict) -> None:
        if change["new"]:
            self.controls["sentence"].value, self.controls["second"].value = change["new"]

    def _read(self, name: str, sentence: str) -> Reading:
        stream = self.streams[name]
        batch = stream.tokenizer(
            [sentence],
            truncation=True,
            max_length=LONGEST,
            return_tensors="pt",
            return_token_type_ids=False,
        ).to(stream.tower.device)
        ids, mask = batch["input_ids"], batch["attention_mask"]
        towers = (tower for tower in (stream.tower, stream.other) if tower is not None)
        traces = [_to_cpu(trace(tower, ids, mask)) for tower in towers]
        tokens = stream.tokenizer.convert_ids_to_tokens(ids[0])
        classes = token_classes(stream.tokenizer, ids[0].cpu(), mask[0].cpu())
        return Reading(tokens, classes, traces[0], traces[1] if len(traces) > 1 else None)

    def figure(
        self,
        *,
        sentence: str,
        second: str,
        model_a: str,
        model_b: str,
        layer: int,
        head: int,
        show: str,
    ) -> go.Figure:
        """The figure for these values of the controls."""
        sides = [(model_a, sentence), (model_b, second.strip() or sentence)]
        figure = make_subplots(
            rows=3,
            cols=2,
            row_heights=[0.5, 0.2, 0.3],
            vertical_spacing=0.13,
            horizontal_spacing=0.17,
            subplot_titles=[
                f"<b>A: {escape_label(model_a)}</b>",
                f"<b>B: {escape_label(model_b)}</b>",
                *(f"{side}: attention received, layer {layer}" for side in "AB"),
                "share of attention by layer (A solid, B dashed)",
                "[CLS] energy by layer",
            ],
        )
        for column, (name, text) in enumerate(sides, 1):
            reading = self.read(name, text)
            _plot_map(figure, column, self.streams[name], reading, layer, head, show)
            _plot_received(figure, column, reading, layer, head)
            _plot_layers(figure, column, reading)
        figure.add_vline(x=layer, line=dict(color="#bbb", dash="dot"), row=3, col="all")
        bar = dict(title="weight" if show == WEIGHTS else "length read", len=0.45, y=0.8)
        return figure.update_layout(
            height=1150,
            barmode="overlay",
            coloraxis=dict(colorscale="Cividis", cmin=0, colorbar=bar),
            legend=dict(orientation="h", y=-0.06, yanchor="top", x=0),
            margin=dict(t=60, b=90, r=90),
        )


def _plot_map(
    figure: go.Figure,
    column: int,
    stream: Stream,
    reading: Reading,
    layer: int,
    head: int,
    show: str,
) -> None:
    """Row 1: the attention map of a layer and head."""
    attention, values = reading.trace.attention, reading.trace.values
    note = ""
    if show == CROSS_LENGTHS:
        if layer in stream.cael:
            values = reading.other_trace.values
        else:
            caels = ", ".join(map(str, stream.cael)) or "none"
            note = f"no cross-attention in this layer (CAELs: {caels}): the tower's values"
    if show != WEIGHTS:
        attention = read_lengths(attention, values)
    cells = _select_head(attention[layer - 1, 0], head)
    n, axis, tokens = len(reading.tokens), reading.axis, reading.axis["ticktext"]
    names = [[f"{query} → {key}" for key in tokens] for query in tokens]
    figure.add_heatmap(
        z=cells.tolist(),
        coloraxis="coloraxis",
        text=names,
        row=1,
        col=column,
        hovertemplate="%{text}: %{z:.3f}<extra></extra>",
    )
    figure.update_xaxes(
        **axis, tickangle=-60, range=[-0.5, n - 0.5], title=note or "key", row=1, col=column
    )
    figure.update_yaxes(
        **axis, range=[n - 0.5, -0.5], title="query" if column == 1 else None, row=1, col=column
    )


def _text(value: str, description: str) -> widgets.Text:
    return widgets.Text(
        value,
        description=description,
        style=LABEL,
        continuous_update=False,
        layout=widgets.Layout(width="48%"),
    )


def _to_cpu(result: Trace) -> Trace:
    return Trace(*(part.float().cpu() for part in result))


def _select_head(attention: Tensor, head: int) -> Tensor:
    """The map of a head, counted from 1, or the mean over heads for 0."""
    return attention.mean(0) if head == 0 else attention[head - 1]


def _plot_received(figure: go.Figure, column: int, reading: Reading, layer: int, head: int) -> None:
    """Row 2: the attention that each token receives, coloured by token class."""
    shares = _select_head(reading.trace.attention[layer - 1, 0], head).mean(0)
    places = torch.arange(len(shares))
    for number, name in enumerate(CLASSES):
        members = reading.classes == number
        figure.add_bar(
            x=places[members].tolist(),
            y=shares[members].tolist(),
            name=name,
            marker_color=COLOURS[number],
            legendgroup=name,
            showlegend=False,
            row=2,
            col=column,
            hovertemplate="%{y:.3f}<extra>" + name + "</extra>",
        )
    figure.update_xaxes(
        **reading.axis,
        tickangle=-60,
        range=[-0.5, len(shares) - 0.5],
        row=2,
        col=column,
    )
    figure.update_yaxes(
        title="share" if column == 1 else None, rangemode="tozero", row=2, col=column
    )


def _plot_layers(figure: go.Figure, column: int, reading: Reading) -> None:
    """Row 3: the share of each token class and the energy of [CLS], by layer."""
    attention = reading.trace.attention
    mask = torch.ones(1, attention.shape[-1], dtype=torch.long)
    received = received_attention(attention, mask)[:, 0]
    layers = list(range(1, len(attention) + 1))
    dash = ("solid", "dash")[column - 1]
    for number, name in enumerate(CLASSES):
        share = received[:, reading.classes == number].sum(1)
        figure.add_scatter(
            x=layers,
            y=share.tolist(),
            mode="lines+markers",
            name=name,
            legendgroup=name,
            showlegend=column == 1,
            line=dict(color=COLOURS[number], dash=dash),
            row=3,
            col=1,
        )
    energy = context_energy(reading.trace.context, mask)[:, 0]
    side = "AB"[column - 1]
    figure.add_scatter(
        x=layers,
        y=energy.tolist(),
        mode="lines+markers",
        name=f"[CLS] energy, {side}",
        row=3,
        col=2,
        line=dict(color=PALETTE[3 * (column == 2)], dash=dash),
    )
    figure.update_xaxes(title="layer", dtick=1, row=3)
    figure.update_yaxes(title="share", range=[0, 1], row=3, col=1)
    figure.update_yaxes(title="‖h_cls‖ / ‖H‖_F", rangemode="tozero", row=3, col=2)
