"""`+UC` of TNCSE and JTCSE: a twin and an encoder trained by others, weighed; and its student."""

from typing import Any, ClassVar

from pydantic import Field, model_validator

from cselab.methods.config import AnyMethod, MethodConfig, Schedule
from cselab.methods.differences import Difference
from cselab.methods.distillation import Distilled
from cselab.methods.infocse import InfoCSE
from cselab.methods.jtcse import JTCSE
from cselab.methods.rankcse import RankCSE
from cselab.methods.registry import register, registered
from cselab.methods.tncse import TNCSE
from cselab.methods.training_free import Materials, TrainingFree
from cselab.models import Ensemble


@register("uc")
class UC(TrainingFree):
    """`(1 - w) twin + w outsider` (JTCSE, https://arxiv.org/abs/2505.02366, "+UC").

    The papers' outsider is one and the same unsupervised InfoCSE checkpoint; here it is trained.
    """

    class Config(MethodConfig):
        """The twin, the outsider and the outsider's weight."""

        twin: AnyMethod = Field(default_factory=JTCSE.Config)
        outsider: AnyMethod = Field(default_factory=InfoCSE.Config)
        """TNCSE and JTCSE: unsupervised InfoCSE."""
        weight: float = Field(0.7, ge=0, le=1)
        """Released TNCSE and JTCSE, BERT."""

        @model_validator(mode="after")
        def _of_encoders(self) -> "UC.Config":
            for name in ("twin", "outsider"):
                method = getattr(self, name).method
                if getattr(registered(method), "fits", False):
                    raise ValueError(
                        f"{name}: {method!r} is fitted to a text and cannot be weighed; expected a "
                        "trained method, or 'untrained'"
                    )
            return self

    paper_row = "JTCSE+UC"
    differences: ClassVar[tuple[Difference, ...]] = (
        Difference(
            name="+UC",
            of="JTCSE",
            paper="sum",
            released="(1 − w) twin + w other, w = 0.7",
            here="released (`Ensemble.uc`); the sum is `Ensemble`",
        ),
        Difference(
            name="UC's outsider",
            of="TNCSE, JTCSE",
            paper="unsupervised InfoCSE's checkpoint; TNCSE adds it to RankCSE in the same way",
            released="the same",
            here="InfoCSE trained here, or another trained method (setting `outsider.method`)",
        ),
    )

    @classmethod
    def encoder(cls, config: Config, materials: Materials) -> Any:
        return Ensemble.uc(*materials.parts, weight=config.weight)


@register("tncse_uc")
class TNCSEUC(UC):
    """TNCSE+UC (TNCSE, https://arxiv.org/abs/2503.12739, Table 1)."""

    class Config(UC.Config):
        """TNCSE in the twin's place."""

        twin: AnyMethod = Field(default_factory=TNCSE.Config)

    paper_row = "TNCSE+UC"
    differences = (
        Difference(
            name="weight of TNCSE's outsider",
            of="TNCSE",
            paper="not stated",
            released="w = 0.7 for BERT, 0.75 for RoBERTa",
            here="0.7 (setting `weight`)",
            roberta={"weight": 0.75},
        ),
    )


@register("rankcse_uc")
class RankCSEUC(UC):
    """RankCSE+UC: one tower and the outsider; what TNCSE compares TNCSE+UC with
    (https://arxiv.org/abs/2503.12739, Table 1), since RankCSE has teachers as well."""

    class Config(UC.Config):
        """RankCSE in the twin's place."""

        twin: AnyMethod = Field(default_factory=RankCSE.Config)

    paper_row = "RankCSE+UC"
    differences = ()


@register("uc_d")
class UCStudent(Distilled):
    """JTCSE UC D: one tower that learned the weighed vectors."""

    class Config(Distilled.Config):
        """A student of UC."""

        teacher: AnyMethod = Field(default_factory=UC.Config)
        schedule: Schedule = Distilled.Config().schedule.model_copy(
            update={"learning_rate": 1.5e-5}  # TNCSE supplement, Table I-1
        )

    paper_row = "JTCSE+UC D"


@register("tncse_uc_d")
class TNCSEUCStudent(UCStudent):
    """TNCSE UC D: one tower that learned the weighed vectors of TNCSE+UC."""

    class Config(UCStudent.Config):
        """A student of TNCSE+UC."""

        teacher: AnyMethod = Field(default_factory=TNCSEUC.Config)

    paper_row = "TNCSE+UC D"


@register("rankcse_uc_d")
class RankCSEUCStudent(UCStudent):
    """RankCSE UC D: one tower that learned the weighed vectors of RankCSE+UC."""

    class Config(UCStudent.Config):
        """A student of RankCSE+UC."""

        teacher: AnyMethod = Field(default_factory=RankCSEUC.Config)

    paper_row = "RankCSE+UC D"
