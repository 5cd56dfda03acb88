"""BERT-whitening (Su et al. 2021): a linear map after an encoder, fitted to a text."""

from typing import Any

from pydantic import Field

from cselab.methods.config import AnyMethod, MethodConfig
from cselab.methods.registry import register
from cselab.methods.training_free import Materials, TrainingFree
from cselab.methods.untrained import Untrained
from cselab.models import Whitened


@register("whitened")
class Whitening(TrainingFree):
    """An encoder, the untrained backbone by default, whitened on the text
    (https://arxiv.org/abs/2103.15316)."""

    class Config(MethodConfig):
        """What is whitened, and on how much text."""

        start: AnyMethod = Field(default_factory=Untrained.Config)
        fitted_on: int = Field(10_000, ge=2)
        """Sentences; ours."""

    fits = True
    paper_row = "BERT-whitening"

    @classmethod
    def encoder(cls, config: Config, materials: Materials) -> Any:
        (start,) = materials.parts
        return Whitened(start.encode, materials.text(config.fitted_on))
