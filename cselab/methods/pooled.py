"""Pooling at inference: a finished encoder, its tokens pooled in another way."""

from typing import Any, Literal

from pydantic import Field

from cselab.methods.nodes import AnyMethod, MethodConfig
from cselab.methods.registry import register
from cselab.methods.simcse import SimCSE
from cselab.methods.training_free import Materials, TrainingFree
from cselab.models import with_pooling


@register("pooled")
class Repooled(TrainingFree):
    """A finished encoder whose tokens are pooled in another way than in its training (JTCSE,
    https://arxiv.org/abs/2505.02366, Table XI; TNCSE, supplement II). `finished.method=jtcse` pools
    each tower of JTCSE."""

    class Config(MethodConfig):
        """The encoder, trained as it always is, and the pooling."""

        finished: AnyMethod = Field(default_factory=SimCSE.Config)
        pooling: Literal["cls", "mean", "first_last", "last_two", "pooler"] = "mean"
        """JTCSE Table XI: [CLS], average, average of first and last layer, pooler."""

    @classmethod
    def encoder(cls, config: Config, materials: Materials) -> Any:
        (finished,) = materials.parts
        return with_pooling(finished, config.pooling)
