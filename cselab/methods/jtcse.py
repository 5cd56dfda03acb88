"""JTCSE: TNCSE with cross-attention layers between the towers, a training-time stream."""

from typing import Any, Literal

from jaxtyping import Float
from pydantic import Field
from torch import Tensor
from transformers import PreTrainedConfig

from cselab.errors import SettingsError
from cselab.methods import StepContext, register, term
from cselab.methods.tncse import ICNCE, RELEASED_LOSSES, TNCSE, TwinOutputs
from cselab.models import cael_positions


@register("jtcse")
class JTCSE(TNCSE):
    """TNCSE with cross-attention layers (CAELs): ICNCE also holds between the cross streams' [CLS]
    (https://arxiv.org/abs/2505.02366, Eq. 12 and 15)."""

    class Config(TNCSE.Config):
        caels: int = Field(6, ge=0)
        """Table IX: 6 of BERT-base's 12 layers is best, every second."""
        cross_stream: Literal["parallel", "last_only", "fused"] = "parallel"
        """A reading of JTCSE's section on the layer: the released code of it is missing."""

    paper_row = "JTCSE"
    released = {
        **RELEASED_LOSSES,
        "schedule.learning_rate": {"bert": lambda config: 1.3 * config.schedule.learning_rate},
        "schedule.batch_size": {"roberta": 256},
    }
    """The rate of BERT-base is 1.3e-6; the dropout stays BERT's."""

    @classmethod
    def cross_attention(cls, config: Config, shape: PreTrainedConfig) -> dict[str, Any]:
        depth = shape.num_hidden_layers
        if config.caels and depth % config.caels:
            raise SettingsError(
                f"caels={config.caels} does not divide the {depth} layers of the backbone; use 0 "
                f"or one of {[n for n in range(1, depth + 1) if depth % n == 0]}"
            )
        cael = cael_positions(depth, depth // config.caels) if config.caels else ()
        return {"cael": cael, "cross_stream": config.cross_stream}

    @term(ICNCE, script="icnce_by_coin")
    def icnce(self, outputs: TwinOutputs, step: StepContext) -> Float[Tensor, ""]:
        """A sentence's vectors of the two towers are turned towards each other, in both streams.

        `−1/N Σᵢ log( exp(cos(xᵢ, yᵢ)/τ) / Σⱼ exp(cos(xᵢ, yⱼ)/τ) )`, x of the anchor, the tower that
        one fair coin a step chooses for both streams, y of the other (Eq. 12)
        """
        streams = [(outputs.cls_i, outputs.cls_ii)]
        if outputs.cross_i is not None:
            streams.append((outputs.cross_i, outputs.cross_ii))
        return sum(self.across(*(s if step.coin else s[::-1]), step) for s in streams)
