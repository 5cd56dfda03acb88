"""CAEL explorer: a diagram of the cross-attention layers, with their cost and scores."""

from collections.abc import Mapping, Sequence

import plotly.graph_objects as go
import traitlets
from plotly.subplots import make_subplots
from transformers import PreTrainedConfig

from cselab.errors import SettingsError
from cselab.evaluation import twin_training_cost
from cselab.models import CROSS_STREAMS, cael_positions
from cselab.workbook.plots.theme import PALETTE
from cselab.workbook.widgets.widget import Widget, one_of

TOWERS, GREY = PALETTE[:2], "#777"


class CaelExplorer(Widget):
    """Choose the cross-attention layers (CAELs) of a twin, and see what reads what, and the cost.

    Shows the towers and their cross streams, the multiply-adds of the forward pass in training, and
    the scores (JTCSE, https://arxiv.org/abs/2505.02366).

    Controls, which can be set as attributes: cael, rising layer numbers from 1; cross_stream, one
    of `cselab.models.CROSS_STREAMS`. They start at the best of `scores`.

    Args:
        config: Configuration of one tower.
        scores: Spearman x100 of trained twins, by layers (counted from 1) and cross stream.
        length: Tokens per sentence, for the multiply-adds.

    Raises:
        SettingsError: For other layers or another cross stream.

    Examples:
        >>> from transformers import BertConfig
        >>> from cselab.workbook.widgets import CaelExplorer
        >>> explorer = CaelExplorer(BertConfig(num_hidden_layers=6))
        >>> explorer.cael = (3, 6)
        >>> round(explorer.cost((3, 6), "parallel") / explorer.cost((), "parallel"), 2)
        1.61
    """

    script = "cael"
    depth = traitlets.Int().tag(sync=True)
    length = traitlets.Int().tag(sync=True)
    cael = traitlets.List(traitlets.Int()).tag(sync=True)
    cross_stream = traitlets.Unicode(CROSS_STREAMS[0]).tag(sync=True)
    cross_streams = traitlets.List(traitlets.Unicode(), list(CROSS_STREAMS)).tag(sync=True)
    presets = traitlets.List(traitlets.List()).tag(sync=True)
    scores = traitlets.List(traitlets.Dict()).tag(sync=True)
    costs = traitlets.Dict().tag(sync=True)
    """By cross stream, GMACs: of the towers; what the first layer of the cross stream (for "fused",
    the first CAEL) adds; what each further one adds."""

    def __init__(
        self,
        config: PreTrainedConfig,
        scores: Mapping[tuple[tuple[int, ...], str], float] | None = None,
        *,
        length: int = 32,
    ):
        depth, scores = config.num_hidden_layers, dict(scores or {})
        best = max(scores, key=scores.__getitem__) if scores else None
        super().__init__(
            depth=depth,
            length=length,
            scores=[
                {"cael": list(cael), "cross_stream": stream, "score": float(score)}
                for (cael, stream), score in scores.items()
            ],
            costs=_costs(config, length),
            presets=[
                [f"{depth // every} (every {every})", list(cael_positions(depth, every))]
                for every in range(1, depth + 1)
                if depth % every == 0
            ],
        )
        chosen, stream = best or (cael_positions(depth, 2 - depth % 2), CROSS_STREAMS[0])
        self.cael, self.cross_stream = list(chosen), stream

    @traitlets.validate("cael")
    def _rising_layers(self, proposal: dict) -> list[int]:
        cael = proposal["value"]
        if cael != sorted(set(cael)) or not all(1 <= layer <= self.depth for layer in cael):
            raise SettingsError(f"cael={cael} must be rising layer numbers from 1 to {self.depth}")
        return cael

    @traitlets.validate("cross_stream")
    def _known_stream(self, proposal: dict) -> str:
        return one_of("cross stream", proposal["value"], list(CROSS_STREAMS))

    def cost(self, cael: Sequence[int], cross_stream: str) -> float:
        """GMACs of one sentence's forward pass in training, with attention, without poolers.

        Equal to `cselab.evaluation.twin_training_cost`, which counts each placement.

        Args:
            cael: Rising layer numbers from 1.
            cross_stream: One of `cselab.models.CROSS_STREAMS`.
        """
        towers, first, further = self.costs[cross_stream]
        if not cael:
            return towers
        layers = {"parallel": cael[-1] - cael[0] + 1, "last_only": 1, "fused": len(cael)}
        return towers + first + (layers[cross_stream] - 1) * further

    def static(self) -> go.Figure:
        """The diagram; the cost of the towers alone beside that with the CAELs; the scores."""
        panels = 2 if self.scores else 1
        figure = make_subplots(
            rows=2,
            cols=panels,
            specs=[[{"colspan": panels}, *[None] * (panels - 1)], [{}] * panels],
            row_heights=[46 * self.depth + 40, 200],
            vertical_spacing=90 / (46 * self.depth + 420),
            horizontal_spacing=0.16,
            subplot_titles=[
                f"CAELs at {', '.join(map(str, self.cael)) or 'no layer'} ({self.cross_stream})",
                f"forward pass, {self.length} tokens",
                "scores",
            ][: panels + 1],
        )
        _Diagram(figure, self.depth, self.cael, self.cross_stream).draw()
        self._add_costs(figure)
        if self.scores:
            self._add_scores(figure)
        return figure.update_layout(
            height=46 * self.depth + 420, showlegend=False, margin=dict(t=60, b=60)
        )

    def _add_costs(self, figure: go.Figure) -> None:
        figure.add_bar(
            y=["with CAELs", "towers"],
            x=[self.cost(cael, self.cross_stream) for cael in (self.cael, [])],
            orientation="h",
            marker_color=[TOWERS[1], TOWERS[0]],
            texttemplate="%{x:.3g}",
            row=2,
            col=1,
        )
        figure.update_xaxes(title="GMACs per sentence", rangemode="tozero", row=2, col=1)

    def _add_scores(self, figure: go.Figure) -> None:
        chosen = (self.cael, self.cross_stream)
        is_chosen = [(row["cael"], row["cross_stream"]) == chosen for row in self.scores]
        figure.add_scatter(
            x=[len(row["cael"]) for row in self.scores],
            y=[row["score"] for row in self.scores],
            mode="markers",
            text=[
                f"{row['cross_stream']}: {', '.join(map(str, row['cael'])) or 'none'}"
                for row in self.scores
            ],
            hovertemplate="%{text}: %{y:.2f}<extra></extra>",
            marker=dict(
                size=[18 if selected else 10 for selected in is_chosen],
                color=[TOWERS[1] if selected else GREY for selected in is_chosen],
            ),
            row=2,
            col=2,
        )
        figure.update_xaxes(title="number of CAELs", dtick=1, row=2, col=2)
        figure.update_yaxes(title="Spearman × 100", row=2, col=2)


def _costs(config: PreTrainedConfig, length: int) -> dict[str, list[float]]:
    count = twin_training_cost(config, length=length)
    towers = count((), "parallel").with_attention
    costs = {}
    for stream in ("parallel", "fused"):
        one = count((1,), stream).with_attention
        two = count((1, 2), stream).with_attention if config.num_hidden_layers > 1 else one
        costs[stream] = [towers, one - towers, two - one]
    return costs | {"last_only": [*costs["parallel"][:2], 0.0]}


class _Diagram:
    """Tower I, its cross stream, tower II's cross stream and tower II: a box per layer.

    Lines have the colour of the tower whose states they carry: solid lines carry values; dotted
    lines carry queries and keys, and the residual of the first CAEL.
    """

    def __init__(self, figure: go.Figure, depth: int, cael: list[int], cross_stream: str):
        self.figure, self.depth, self.cael = figure, depth, cael
        self.fused = cross_stream == "fused"
        last = cael[-1] if cael else 0
        first = cael[0] if cael and cross_stream == "parallel" else last
        self.running = range(first, last + 1) if cael and not self.fused else range(0)
        self.crossing = [n for n in cael if self.fused or n in self.running]
        self.at = (0.0, 3.6)
        self.beside = self.at if self.fused else (1.2, 2.4)

    def draw(self) -> None:
        for side in (0, 1):
            for layer in range(1, self.depth + 1):
                fused = self.fused and layer in self.crossing
                self._box(self.at[side], layer, f"layer {layer}" + " + CAEL" * fused, TOWERS[side])
                self._arrow(self.at[side], layer - 0.7, layer - 0.3, TOWERS[side])
            for layer in self.running:
                name = "CAEL" if layer in self.crossing else "layer"
                self._box(self.beside[side], layer, f"{name} {layer}", GREY)
                if layer > self.running[0]:
                    self._arrow(self.beside[side], layer - 0.7, layer - 0.3, GREY)
            for layer in self.crossing:
                self._cross(side, layer)
        names = {self.at[0]: "tower I", self.at[1]: "tower II"}
        if self.running:
            names |= {self.beside[0]: "cross stream I", self.beside[1]: "cross stream II"}
        self.figure.update_xaxes(
            tickvals=list(names), ticktext=list(names.values()), range=[-0.7, 4.3], row=1, col=1
        )
        self.figure.update_xaxes(showgrid=False, showline=False, ticks="", side="top", row=1, col=1)
        self.figure.update_yaxes(visible=False, range=[0.2, self.depth + 0.6], row=1, col=1)
        self.figure.layout.annotations[0].yshift = 28

    def _cross(self, side: int, layer: int) -> None:
        """The states of tower `side` before a layer, read by both cross streams (or by the other
        tower)."""
        sign, y = 1 - 2 * side, layer - (0.45, 0.56)[side]
        values = self.beside[1 - side] - 0.2 * sign
        self._line(self.at[side], values, y, TOWERS[side])
        self._arrow(values, y, layer - 0.3, TOWERS[side])
        if not self.fused:
            own = self.beside[side] - 0.2 * sign
            self._line(own, own, y, TOWERS[side], until=layer - 0.3, dash="dot")

    def _box(self, x: float, layer: int, text: str, colour: str) -> None:
        half = 0.6 if self.fused else 0.42
        self.figure.add_shape(
            type="rect",
            x0=x - half,
            x1=x + half,
            y0=layer - 0.3,
            y1=layer + 0.3,
            line_color=colour,
            row=1,
            col=1,
            label=dict(text=text, font=dict(size=12)),
        )

    def _line(self, x0, x1, y, colour: str, *, until=None, dash: str = "solid") -> None:
        self.figure.add_shape(
            type="line",
            x0=x0,
            x1=x1,
            y0=y,
            y1=y if until is None else until,
            line=dict(color=colour, width=1.5, dash=dash),
            row=1,
            col=1,
        )

    def _arrow(self, x: float, y0: float, y1: float, colour: str) -> None:
        self.figure.add_annotation(
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
