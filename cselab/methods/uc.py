"""`+UC` of TNCSE and JTCSE: the weighed sum of a twin and an encoder trained by others."""

from typing import Any

from pydantic import Field, model_validator

from cselab.methods import AnyMethod, Materials, MethodConfig, TrainingFree, register, registered
from cselab.methods.baselines.infocse import InfoCSE
from cselab.methods.jtcse import JTCSE
from cselab.models import Ensemble


@register("uc")
class UC(TrainingFree):
    """`(1 - w) twin + w outsider` (JTCSE, https://arxiv.org/abs/2505.02366, "+UC").

    The papers' outsider is one and the same unsupervised InfoCSE checkpoint, a BERT with its own
    tokenizer, also beside twins of RoBERTa; here it is trained, or a finished encoder
    (docs/how-to/encoders.md).
    """

    class Config(MethodConfig):
        outsiders = ("outsider",)
        twin: AnyMethod = Field(default_factory=JTCSE.Config)
        outsider: AnyMethod = Field(default_factory=InfoCSE.Config)
        """TNCSE and JTCSE: unsupervised InfoCSE."""
        weight: float = Field(0.7, ge=0, le=1)
        """Released TNCSE and JTCSE, BERT."""

        @model_validator(mode="after")
        def _check_parts(self) -> "UC.Config":
            for name, part in (("twin", self.twin), ("outsider", self.outsider)):
                if registered(part.method).fits:
                    raise ValueError(
                        f"{name}: {part.method!r} is fitted to a text and cannot be weighed; "
                        "expected a trained method, or 'untrained'"
                    )
            return self

    paper_row = "JTCSE+UC"

    @classmethod
    def encoder(cls, config: Config, materials: Materials) -> Any:
        return Ensemble.uc(*materials.parts, weight=config.weight)
