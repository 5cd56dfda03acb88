"""JTCSE: TNCSE with cross-attention layers between the towers, a training-time stream (METHODS 4)."""

from collections.abc import Mapping
from typing import ClassVar

from jaxtyping import Float
from torch import Tensor, nn

from cselab.errors import SettingsError
from cselab.methods.base import Ids, Vectors, register
from cselab.methods.context import StepContext
from cselab.methods.tncse import TNCSE
from cselab.models import cael_positions
from cselab.settings import Settings


@register("jtcse")
class JTCSE(TNCSE):
    """TNCSE with cross-attention layers (CAELs): ICNCE also holds between the cross streams' [CLS] (Eq. 12, 15)."""

    released_dropout: ClassVar[Mapping[str, float]] = {}  # this repository leaves BERT's 0.1
    released_rate: ClassVar[float] = 1.3

    @staticmethod
    def cross_attention(settings: Settings, tower: nn.Module) -> dict:
        depth = tower.config.num_hidden_layers
        if settings.caels and depth % settings.caels:
            counts = [n for n in range(1, depth + 1) if depth % n == 0]
            raise SettingsError(
                f"caels={settings.caels} does not divide the {depth} layers of {settings.backbone}; use 0 or one of {counts}"
            )
        cael = cael_positions(depth, depth // settings.caels) if settings.caels else ()
        return {"cael": cael, "cross_stream": settings.cross_stream}

    def icnce(self, vectors: Vectors, context: StepContext, ids: Ids) -> Float[Tensor, ""]:
        """Eq. 12: one fair coin a step says which tower is the anchor, for both streams."""
        x, y = ("i", "ii") if context.coin else ("ii", "i")
        streams = [stream for stream in ("cls", "cross") if f"{stream}_i" in vectors]
        return sum(self.across(vectors[f"{stream}_{x}"], vectors[f"{stream}_{y}"], ids) for stream in streams)
