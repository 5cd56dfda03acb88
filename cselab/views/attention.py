"""The attention inspector: where two models look on a sentence, layer by layer and head by head."""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

import ipywidgets as widgets
import plotly.graph_objects as go
import torch
from plotly.subplots import make_subplots
from torch import Tensor

from cselab.analysis import CLASSES, Trace, context_energy, read_lengths, received_attention, token_classes, trace
from cselab.models import SentenceEncoder, TwinEncoder
from cselab.views.streams import Stream, streams
from cselab.views.theme import PALETTE
from cselab.views.view import LABEL, View, shown

COLOURS = (PALETTE[0], PALETTE[1], PALETTE[4], "#999999")  # of CLASSES
WEIGHTS, OWN, ACROSS = "attention weights", "weight × length of the value", "weight × length of the other tower's value"
LONGEST = 48
"""Tokens of a sentence; more are not legible."""


class Reading(NamedTuple):
    """A sentence as a tower reads it; `across` is the other tower's trace."""

    tokens: list[str]
    classes: Tensor
    own: Trace
    across: Trace | None

    @property
    def axis(self) -> dict:
        """Ticks of an axis whose places are the tokens."""
        return dict(tickvals=list(range(len(self.tokens))), ticktext=[shown(token) for token in self.tokens])


class AttentionInspector(View):
    """Two models side by side on one sentence, or on a pair: attention map, who receives it, sinks and [CLS] energy by layer.

    encoders: models by name, of one depth and number of heads, on any device; a twin shows as its two towers. pairs: sentences
        to pick from.
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
        pick = widgets.Dropdown(
            options=[("a pair of sentences …", ()), *((f"{a}  |  {b}", (a, b)) for a, b in pairs)], description="pick"
        )
        self.controls = {
            "sentence": _text(sentence, "sentence"),
            "second": _text("", "second (empty: the same)"),
            "model_a": widgets.Dropdown(options=names, description="model A"),
            "model_b": widgets.Dropdown(options=names, value=names[-1], description="model B"),
            "layer": widgets.IntSlider(config.num_hidden_layers, 1, config.num_hidden_layers, description="layer"),
            "head": widgets.Dropdown(
                options=[("mean", 0), *((str(h), h) for h in range(1, config.num_attention_heads + 1))], description="head"
            ),
            "show": widgets.Dropdown(options=[WEIGHTS, OWN, ACROSS], description="show"),
        }  # fmt: skip
        self.pick = pick
        pick.observe(self._picked, names="value")

    def widget(self) -> widgets.Widget:
        whole = super().widget()
        return widgets.VBox([self.pick, *whole.children]) if len(self.pick.options) > 1 else whole

    def _picked(self, change: dict) -> None:
        if change["new"]:
            self.controls["sentence"].value, self.controls["second"].value = change["new"]

    def _read(self, name: str, sentence: str) -> Reading:
        stream = self.streams[name]
        batch = stream.tokenizer(
            [sentence], truncation=True, max_length=LONGEST, return_tensors="pt", return_token_type_ids=False
        ).to(stream.tower.device)
        ids, mask = batch["input_ids"], batch["attention_mask"]
        traces = [_to_cpu(trace(tower, ids, mask)) for tower in (stream.tower, stream.other) if tower is not None]
        tokens = stream.tokenizer.convert_ids_to_tokens(ids[0])
        classes = token_classes(stream.tokenizer, ids[0].cpu(), mask[0].cpu())
        return Reading(tokens, classes, traces[0], traces[1] if len(traces) > 1 else None)

    def figure(
        self, *, sentence: str, second: str, model_a: str, model_b: str, layer: int, head: int, show: str
    ) -> go.Figure:  # fmt: skip
        sides = [(model_a, sentence), (model_b, second.strip() or sentence)]
        figure = make_subplots(
            rows=3, cols=2, row_heights=[0.5, 0.2, 0.3], vertical_spacing=0.13, horizontal_spacing=0.17,
            subplot_titles=[
                *(f"<b>{side}: {shown(name)}</b>" for side, (name, _) in zip("AB", sides, strict=True)),
                *(f"{side}: attention received, layer {layer}" for side in "AB"),
                "share of attention by layer (A solid, B dashed)", "[CLS] energy by layer",
            ],
        )  # fmt: skip
        for column, (name, text) in enumerate(sides, 1):
            reading = self.read(name, text)
            self._map(figure, column, self.streams[name], reading, layer, head, show)
            _received(figure, column, reading, layer, head)
            _by_layer(figure, column, reading)
        figure.add_vline(x=layer, line=dict(color="#bbb", dash="dot"), row=3, col="all")
        what = "weight" if show == WEIGHTS else "length read"
        return figure.update_layout(
            height=1150, barmode="overlay", coloraxis=dict(colorscale="Cividis", cmin=0, colorbar=dict(title=what, len=0.45, y=0.8)),
            legend=dict(orientation="h", y=-0.06, yanchor="top", x=0), margin=dict(t=60, b=90, r=90),
        )  # fmt: skip

    def _map(
        self, figure: go.Figure, column: int, stream: Stream, reading: Reading, layer: int, head: int, show: str
    ) -> None:
        attention, values = reading.own.attention, reading.own.values
        note = ""
        if show == ACROSS:
            if layer in stream.cael:
                values = reading.across.values
            else:
                note = f"no cross-attention here (CAELs: {', '.join(map(str, stream.cael)) or 'none'}): own values"
        if show != WEIGHTS:
            attention = read_lengths(attention, values)
        cells = _heads(attention[layer - 1, 0], head)
        n, axis, tokens = len(reading.tokens), reading.axis, reading.axis["ticktext"]
        names = [[f"{query} → {key}" for key in tokens] for query in tokens]
        figure.add_heatmap(
            z=cells.tolist(), coloraxis="coloraxis", text=names, row=1, col=column,
            hovertemplate="%{text}: %{z:.3f}<extra></extra>",
        )  # fmt: skip
        figure.update_xaxes(**axis, tickangle=-60, range=[-0.5, n - 0.5], title=note or "key", row=1, col=column)
        figure.update_yaxes(**axis, range=[n - 0.5, -0.5], title="query" if column == 1 else None, row=1, col=column)


def _text(value: str, description: str) -> widgets.Text:
    return widgets.Text(
        value, description=description, style=LABEL, continuous_update=False, layout=widgets.Layout(width="48%")
    )


def _to_cpu(traced: Trace) -> Trace:
    return Trace(*(part.float().cpu() for part in traced))


def _heads(attention: Tensor, head: int) -> Tensor:
    return attention.mean(0) if head == 0 else attention[head - 1]


def _received(figure: go.Figure, column: int, reading: Reading, layer: int, head: int) -> None:
    shares = _heads(reading.own.attention[layer - 1, 0], head).mean(0)
    places = torch.arange(len(shares))
    for number, name in enumerate(CLASSES):
        mine = reading.classes == number
        figure.add_bar(
            x=places[mine].tolist(), y=shares[mine].tolist(), name=name, marker_color=COLOURS[number], legendgroup=name,
            showlegend=False, row=2, col=column,
            hovertemplate="%{y:.3f}<extra>" + name + "</extra>",
        )  # fmt: skip
    figure.update_xaxes(
        **reading.axis,
        tickangle=-60,
        range=[-0.5, len(shares) - 0.5],
        row=2,
        col=column,
    )
    figure.update_yaxes(title="share" if column == 1 else None, rangemode="tozero", row=2, col=column)


def _by_layer(figure: go.Figure, column: int, reading: Reading) -> None:
    attention = reading.own.attention
    mask = torch.ones(1, attention.shape[-1], dtype=torch.long)
    received = received_attention(attention, mask)[:, 0]
    layers = list(range(1, len(attention) + 1))
    dash = ("solid", "dash")[column - 1]
    for number, name in enumerate(CLASSES):
        share = received[:, reading.classes == number].sum(1)
        figure.add_scatter(
            x=layers, y=share.tolist(), mode="lines+markers", name=name, legendgroup=name, showlegend=column == 1,
            line=dict(color=COLOURS[number], dash=dash), row=3, col=1,
        )  # fmt: skip
    energy = context_energy(reading.own.context, mask)[:, 0]
    side = "AB"[column - 1]
    figure.add_scatter(
        x=layers, y=energy.tolist(), mode="lines+markers", name=f"[CLS] energy, {side}", row=3, col=2,
        line=dict(color=PALETTE[3 * (column == 2)], dash=dash),
    )  # fmt: skip
    figure.update_xaxes(title="layer", dtick=1, row=3)
    figure.update_yaxes(title="share", range=[0, 1], row=3, col=1)
    figure.update_yaxes(title="‖h_cls‖ / ‖H‖_F", rangemode="tozero", row=3, col=2)
