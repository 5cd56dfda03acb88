"""Pooling at inference: a finished encoder, its tokens pooled in another way."""

from typing import Any

from pydantic import Field

from cselab.methods import AnyMethod, Materials, MethodConfig, TrainingFree, register
from cselab.methods.nodes import Pooling
from cselab.methods.simcse import SimCSE
from cselab.models import with_pooling


@register("pooled")
class Pooled(TrainingFree):
    """A finished encoder whose tokens are pooled in another way than in its training (JTCSE,
    https://arxiv.org/abs/2505.02366, Table XI; TNCSE, supplement II). `finished.method=jtcse` pools
    each tower of JTCSE."""

    class Config(MethodConfig):
        finished: AnyMethod = Field(default_factory=SimCSE.Config)
        pooling: Pooling = "mean"
        """JTCSE Table XI: [CLS], average, average of first and last layer, pooler."""

    @classmethod
    def encoder(cls, config: Config, materials: Materials) -> Any:
        return with_pooling(materials.parts[0], config.pooling)
