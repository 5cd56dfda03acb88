"""BERT-flow (Li et al. 2020): an invertible flow after an encoder, fitted to a text."""

from typing import Any

from pydantic import Field

from cselab.methods.config import AnyMethod, MethodConfig
from cselab.methods.registry import register
from cselab.methods.training_free import Materials, TrainingFree
from cselab.methods.untrained import Untrained
from cselab.models import Flowed


@register("flow")
class Flow(TrainingFree):
    """An encoder, the untrained backbone by default, and a flow to a unit Gaussian
    (https://arxiv.org/abs/2011.05864)."""

    class Config(MethodConfig):
        """What the flow is put after, and on how much text it is fitted."""

        start: AnyMethod = Field(default_factory=Untrained.Config)
        fitted_on: int = Field(10_000, ge=2)
        """Sentences; ours."""

    fits = True
    paper_row = "BERT-flow"

    @classmethod
    def encoder(cls, config: Config, materials: Materials) -> Any:
        (start,) = materials.parts
        return Flowed(start.encode, materials.text(config.fitted_on))
