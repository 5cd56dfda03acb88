"""CAEL explorer: a diagram of the cross-attention layers, with their cost and scores."""

from collections.abc import Mapping

import ipywidgets as widgets
import plotly.graph_objects as go
from plotly.subplots import make_subplots
from transformers import PreTrainedConfig

from cselab.evaluation import twin_training_cost
from cselab.models import CROSS_STREAMS, cael_positions
from cselab.plots.theme import PALETTE
from cselab.widgets.widget import LABEL, FigureApp

TOWER, CROSS, CROSS_II, GREY = PALETTE[0], PALETTE[1], PALETTE[3], "#777"


class CaelExplorer(FigureApp):
    """Choose the CAELs of a twin by check boxes.

    Shows the towers and their cross streams, the multiply-adds of the forward pass in training, and
    the scores.

    config: of one tower.
    scores: Spearman x100 of trained twins, by layers (counted from 1) and cross stream.
    length: tokens per sentence, for the multiply-adds.
    """

    def __init__(
        self,
        config: PreTrainedConfig,
        scores: Mapping[tuple[tuple[int, ...], str], float] | None = None,
        *,
        length: int = 32,
    ):
        self.scores, self.length = dict(scores or {}), length
        self.cost = twin_training_cost(config, length=length)
        self.depth = config.num_hidden_layers
        presets = {
            f"{self.depth // n} CAELs (every {n})": cael_positions(self.depth, n)
            for n in range(1, self.depth + 1)
            if self.depth % n == 0
        }
        ticked = self.best_layers() or cael_positions(self.depth, 2 - self.depth % 2)
        self.controls = {
            f"layer_{n}": widgets.Checkbox(
                n in ticked, description=str(n), indent=False, layout=widgets.Layout(width="48px")
            )
            for n in range(1, self.depth + 1)
        }
        self.controls["cross_stream"] = widgets.Dropdown(
            options=CROSS_STREAMS, description="cross stream", style=LABEL
        )
        self.preset = widgets.Dropdown(options=[("the papers' placements …", ()), *presets.items()])
        self.preset.observe(self._on_preset, names="value")

    def best_layers(self) -> tuple[int, ...] | None:
        """The layers with the best score; None without scores."""
        return max(self.scores, key=self.scores.get)[0] if self.scores else None

    def widget(self) -> widgets.Widget:
        """Controls, a menu of presets, and the figure."""
        return widgets.VBox([self.preset, *super().widget().children])

    def _on_preset(self, change: dict) -> None:
        for n in range(1, self.depth + 1):
            if change["new"]:
                self.controls[f"layer_{n}"].value = n in change["new"]

    def figure(self, *, cross_stream: str, **ticks: bool) -> go.Figure:
        """The figure for these values of the controls."""
        cael = tuple(n for n in range(1, self.depth + 1) if ticks[f"layer_{n}"])
        panels = 3 if self.scores else 2
        figure = make_subplots(
            cols=panels,
            column_widths=[0.5, 0.2, 0.3][:panels],
            horizontal_spacing=0.09,
            subplot_titles=[
                f"CAELs at {', '.join(map(str, cael)) or 'no layer'}",
                "forward pass",
                "scores",
            ][:panels],
        )
        _plot_streams(figure, self.depth, cael, cross_stream)
        self._plot_cost(figure, cael, cross_stream)
        if self.scores:
            self._plot_scores(figure, cael, cross_stream)
        return figure.update_layout(
            height=max(420, 130 + 52 * self.depth), showlegend=False, margin=dict(t=60, b=60)
        )

    def _plot_cost(self, figure: go.Figure, cael: tuple[int, ...], cross_stream: str) -> None:
        costs = [self.cost(layers, cross_stream) for layers in ((), cael)]
        figure.add_bar(
            x=["towers", "with CAELs"],
            y=[cost.with_attention for cost in costs],
            marker_color=[TOWER, CROSS],
            texttemplate="%{y:.3g}",
            row=1,
            col=2,
        )
        figure.update_yaxes(title=f"GMACs per sentence of {self.length} tokens", row=1, col=2)

    def _plot_scores(self, figure: go.Figure, cael: tuple[int, ...], cross_stream: str) -> None:
        chosen = [(layers, stream) == (cael, cross_stream) for layers, stream in self.scores]
        figure.add_scatter(
            x=[len(layers) for layers, _ in self.scores],
            y=list(self.scores.values()),
            mode="markers",
            text=[
                f"{stream}: {', '.join(map(str, layers)) or 'none'}"
                for layers, stream in self.scores
            ],
            hovertemplate="%{text}: %{y:.2f}<extra></extra>",
            marker=dict(
                size=[18 if selected else 10 for selected in chosen],
                color=[CROSS if selected else GREY for selected in chosen],
            ),
            row=1,
            col=3,
        )
        figure.update_xaxes(title="number of CAELs", dtick=1, row=1, col=3)
        figure.update_yaxes(title="Spearman × 100", row=1, col=3)


def _plot_streams(figure: go.Figure, depth: int, cael: tuple[int, ...], cross_stream: str) -> None:
    """Draw tower I, its cross stream, tower II's cross stream and tower II, one box per layer."""
    fused, last = cross_stream == "fused", cael[-1] if cael else 0
    first = cael[0] if cael and cross_stream == "parallel" else last
    running = range(first, last + 1) if cael and not fused else range(0)
    at = {"I": 0.0, "II": 3.6}
    beside = at if fused else {"I": 1.2, "II": 2.4}
    for tower, other, colour, below in (("I", "II", CROSS, 0.38), ("II", "I", CROSS_II, 0.46)):
        for layer in range(1, depth + 1):
            crossing = layer in cael and (fused or layer in running)
            frame = colour if fused and crossing else TOWER
            _box(figure, at[tower], layer, f"layer {layer}", frame)
            if layer < depth:
                _arrow(figure, at[tower], layer + 0.3, layer + 0.7, TOWER)
            if layer in running:
                name = "CAEL" if crossing else f"layer {layer}"
                _box(figure, beside[tower], layer, name, colour if crossing else GREY)
                if layer < last:
                    _arrow(figure, beside[tower], layer + 0.3, layer + 0.7, GREY)
            if crossing:  # from the other tower's states before this layer, whose values it reads
                x = beside[tower] + 0.2 * (at[other] > 0) - 0.1
                _line(figure, at[other], x, layer - below, colour)
                _arrow(figure, x, layer - below, layer - 0.3, colour)
        if running:  # the residual of the first CAEL
            _line(figure, at[tower], beside[tower], first - 0.54, GREY)
            _arrow(figure, beside[tower], first - 0.54, first - 0.3, GREY)
    names = {at["I"]: "tower I", at["II"]: "tower II"}
    names |= {beside["I"]: "cross stream I", beside["II"]: "cross stream II"} if running else {}
    figure.update_xaxes(
        tickvals=list(names),
        ticktext=list(names.values()),
        range=[-0.7, 4.3],
        showgrid=False,
        row=1,
        col=1,
    )
    figure.update_yaxes(
        title="layer",
        tickvals=list(range(1, depth + 1)),
        range=[0.2, depth + 0.6],
        showgrid=False,
        row=1,
        col=1,
    )


def _box(figure: go.Figure, x: float, layer: int, text: str, colour: str) -> None:
    figure.add_shape(
        type="rect",
        x0=x - 0.42,
        x1=x + 0.42,
        y0=layer - 0.3,
        y1=layer + 0.3,
        line_color=colour,
        fillcolor="white",
        row=1,
        col=1,
        label=dict(text=text, font=dict(size=12, color=colour)),
    )


def _line(figure: go.Figure, x0: float, x1: float, y: float, colour: str) -> None:
    figure.add_shape(
        type="line", x0=x0, x1=x1, y0=y, y1=y, line=dict(color=colour, width=1.5), row=1, col=1
    )


def _arrow(figure: go.Figure, x: float, y0: float, y1: float, colour: str) -> None:
    figure.add_annotation(
        x=x,
        y=y1,
        ax=x,
        ay=y0,
        xref="x",
        yref="y",
        axref="x",
        ayref="y",
        showarrow=True,
        arrowhead=2,
        arrowwidth=1.5,
        arrowcolor=colour,
        text="",
    )
