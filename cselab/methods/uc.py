"""+UC: a twin and an outsider, weighed (TNCSE and JTCSE "+UC")."""

from typing import Any

from pydantic import Field

from cselab.methods.config import AnyMethod, MethodConfig
from cselab.methods.differences import Difference
from cselab.methods.distillation import Distilled
from cselab.methods.jtcse import JTCSE
from cselab.methods.registry import register
from cselab.methods.supervised import SupervisedSimCSE
from cselab.methods.training_free import Materials, TrainingFree
from cselab.models import Ensemble


@register("uc")
class UC(TrainingFree):
    """`(1 - w) twin + w outsider` (JTCSE, https://arxiv.org/abs/2505.02366, "+UC")."""

    class Config(MethodConfig):
        """The twin, the outsider and the outsider's weight."""

        twin: AnyMethod = Field(default_factory=JTCSE.Config)
        outsider: AnyMethod = Field(default_factory=SupervisedSimCSE.Config)
        """The papers' is the unsupervised InfoCSE checkpoint, which a hub has."""
        weight: float = Field(0.7, ge=0, le=1)
        """Released JTCSE, BERT."""

    paper_row = "JTCSE+UC"
    differences = (
        Difference(
            name="+UC",
            of="JTCSE",
            paper="sum",
            released="(1 − w) twin + w other, w = 0.7",
            here="released (`Ensemble.uc`); the sum is `Ensemble`",
        ),
        Difference(
            name="outsider of +UC and its weight",
            of="TNCSE, JTCSE",
            paper="unsupervised InfoCSE; TNCSE adds it to RankCSE in the same way",
            released="w = 0.7 for BERT, 0.75 for the RoBERTa twin of TNCSE",
            here="any method (setting `outsider.method`), w = 0.7; by default supervised SimCSE, "
            "which needs no hub",
        ),
    )

    @classmethod
    def encoder(cls, config: Config, materials: Materials) -> Any:
        return Ensemble.uc(*materials.parts, weight=config.weight)


@register("uc_d")
class UCStudent(Distilled):
    """JTCSE UC D: one tower that learned the weighed vectors."""

    class Config(Distilled.Config):
        """A student of UC."""

        teacher: AnyMethod = Field(default_factory=UC.Config)

    paper_row = "JTCSE+UC D"
