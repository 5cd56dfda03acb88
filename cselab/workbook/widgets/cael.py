"""CAEL explorer: the cross-attention layers of a twin, with their cost and scores."""

from collections.abc import Mapping, Sequence

import plotly.graph_objects as go
import traitlets
from transformers import PreTrainedConfig

from cselab.errors import SettingsError
from cselab.evaluation.cost import twin_training_cost
from cselab.models import CROSS_STREAMS, cael_positions
from cselab.workbook.widgets.figure import Panel, plain_figure
from cselab.workbook.widgets.widget import Widget, one_of


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
    """By cross stream, GMACs of the towers, of the cross stream's first layer (for "fused", the
    first CAEL) and of each further one."""

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
                dict(cael=list(cael), cross_stream=stream, score=float(score))
                for (cael, stream), score in scores.items()
            ],
            costs=_costs(config, length),
            presets=[
                [f"{depth // n} (every {n})", list(cael_positions(depth, n))]
                for n in range(1, depth + 1)
                if depth % n == 0
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
        """
        towers, first, further = self.costs[cross_stream]
        if not cael:
            return towers
        layers = {"parallel": cael[-1] - cael[0] + 1, "last_only": 1, "fused": len(cael)}
        return towers + first + (layers[cross_stream] - 1) * further

    def static(self) -> go.Figure:
        """The cost of the towers alone and with the CAELs, and the scores."""
        layers = ", ".join(map(str, self.cael)) or "no layer"
        chosen = f"CAELs at {layers} ({self.cross_stream})"
        costs = [self.cost((), self.cross_stream), self.cost(self.cael, self.cross_stream)]
        x = f"GMACs per sentence of {self.length} tokens"
        marks = {"cost": (costs, ["towers", "with CAELs"])}
        panels = {chosen: Panel(x, "", marks, "markers")}
        if self.scores:
            marks = {
                stream: ([len(row["cael"]) for row in rows], [row["score"] for row in rows])
                for stream in self.cross_streams
                if (rows := [row for row in self.scores if row["cross_stream"] == stream])
            }
            panels["scores"] = Panel("number of CAELs", "Spearman × 100", marks, "markers")
        return plain_figure(panels)


def _costs(config: PreTrainedConfig, length: int) -> dict[str, list[float]]:
    count = twin_training_cost(config, length=length)
    towers = count((), "parallel").with_attention
    costs = {}
    for stream in ("parallel", "fused"):
        one = count((1,), stream).with_attention
        two = count((1, 2), stream).with_attention if config.num_hidden_layers > 1 else one
        costs[stream] = [towers, one - towers, two - one]
    return costs | {"last_only": [*costs["parallel"][:2], 0.0]}
