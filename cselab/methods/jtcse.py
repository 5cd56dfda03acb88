"""JTCSE: TNCSE with cross-attention layers between the towers, a training-time stream."""

from typing import Any, Literal

from jaxtyping import Float
from pydantic import Field
from torch import Tensor, nn

from cselab.errors import SettingsError
from cselab.methods.config import AnyMethod
from cselab.methods.context import StepContext
from cselab.methods.differences import Difference
from cselab.methods.distillation import Distilled
from cselab.methods.registry import register
from cselab.methods.terms import term
from cselab.methods.tncse import ICNCE, TNCSE, TwinOutputs
from cselab.models import cael_positions


@register("jtcse")
class JTCSE(TNCSE):
    """TNCSE with cross-attention layers (CAELs): ICNCE also holds between the cross streams' [CLS]
    (https://arxiv.org/abs/2505.02366, Eq. 12 and 15)."""

    class Config(TNCSE.Config):
        """Stage 2's settings, and the towers of stage 1."""

        caels: int = Field(6, ge=0)
        """Table IX: 6 of BERT-base's 12 layers is best, every second."""
        cross_stream: Literal["parallel", "last_only", "fused"] = "parallel"
        """A reading of JTCSE's section on the layer: the released code of it is missing."""

    paper_row = "JTCSE"
    differences = (
        *TNCSE.both,
        Difference(
            name="learning rate of stage 2",
            of="JTCSE",
            paper="as TNCSE, 1e-6",
            released="1.3e-6, with BERT's dropout of 0.1; these are JTCSE's values alone",
            here="paper",
            change=lambda config: {"schedule.learning_rate": 1.3 * config.schedule.learning_rate},
            roberta={"schedule.batch_size": 256},
        ),
        Difference(
            name="dropout in stage 2 of JTCSE",
            of="JTCSE",
            paper="not stated, so BERT's 0.1",
            released="BERT's 0.1",
            here='the same. The preset "released" gives each method the dropout and the rate of '
            "its own repository, never TNCSE's dropout with JTCSE's rate",
        ),
        Difference(
            name="cross stream between the cross-attention layers",
            of="JTCSE",
            paper='not stated in full; section VI-B says that the mixture is "propagated forward '
            'to the next EncoderLayer of the current encoder", which speaks against `last_only`',
            released="the layer's code is not in the repository",
            here='a reading, "parallel"; two others are settings',
            term="icnce",
            change={"cross_stream": "last_only"},
            labels=("parallel", "last_only"),
            preset=False,
        ),
        Difference(
            name="pooling study",
            of="JTCSE",
            paper="pools finished checkpoints at inference (Table XI)",
            released="the same",
            here="the same, on dev in notebook 07; the first edition's study trains with each "
            "pooling",
        ),
        Difference(
            name="GMACs",
            of="JTCSE",
            paper='"inference complexity"',
            released="THOP, which does not count the products inside attention",
            here="both counts are shown",
        ),
    )

    @classmethod
    def cross_attention(cls, config: Config, tower: nn.Module) -> dict[str, Any]:
        depth = tower.config.num_hidden_layers
        if config.caels and depth % config.caels:
            counts = [n for n in range(1, depth + 1) if depth % n == 0]
            raise SettingsError(
                f"caels={config.caels} does not divide the {depth} layers of the backbone; "
                f"use 0 or one of {counts}"
            )
        cael = cael_positions(depth, depth // config.caels) if config.caels else ()
        return {"cael": cael, "cross_stream": config.cross_stream}

    @term(ICNCE)
    def icnce(self, outputs: TwinOutputs, step: StepContext) -> Float[Tensor, ""]:
        """Eq. 12: one fair coin a step says which tower is the anchor, for both streams."""
        streams = [(outputs.cls_i, outputs.cls_ii)]
        if outputs.cross_i is not None:
            streams.append((outputs.cross_i, outputs.cross_ii))
        return sum(self.across(*(s if step.coin else s[::-1]), step) for s in streams)


@register("jtcse_d")
class JTCSEStudent(Distilled):
    """JTCSE D: one tower that learned the twin's vectors."""

    class Config(Distilled.Config):
        """A student of JTCSE."""

        teacher: AnyMethod = Field(default_factory=JTCSE.Config)

    paper_row = "JTCSE D"
