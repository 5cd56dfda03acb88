"""BERT-whitening (Su et al. 2021) and BERT-flow (Li et al. 2020): maps fitted to a text."""

from collections.abc import Sequence
from typing import Any, ClassVar, Literal

from pydantic import Field

from cselab.errors import DataError
from cselab.methods import AnyMethod, Materials, MethodConfig, TrainingFree, register
from cselab.methods.untrained import Untrained
from cselab.models import Flowed, Whitened
from cselab.models.encode import Encoder


class Fitted(TrainingFree):
    """An encoder, trained or not, and a map of its vectors that is fitted to a text."""

    class Config(MethodConfig):
        start: AnyMethod = Field(default_factory=Untrained.Config)
        """ImSimCSE Table 4: the untrained backbone, and a finished SimCSE."""
        text: Literal["corpus", "nli"] = "corpus"
        """"corpus" is the training text; "nli" has the premises and hypotheses, without labels."""
        fitted_on: int = Field(10_000, ge=2)
        """Sentences; ours."""

    fits = True
    map_class: ClassVar[type]
    """Made of `encode` and the sentences it is fitted to."""

    @classmethod
    def check(cls, config: Config, parts: Sequence[Encoder], sentences: int) -> None:
        width, sentences = parts[0].encode(["."]).shape[1], min(sentences, config.fitted_on)
        if sentences <= width:
            raise DataError(
                f"{config.method} of {width} dimensions needs more sentences than that, got "
                f"{sentences}; give more text, or a larger fitted_on"
            )

    @classmethod
    def encoder(cls, config: Config, materials: Materials) -> Any:
        return cls.map_class(materials.parts[0].encode, materials.text(config.fitted_on))


@register("whitened")
class BertWhitening(Fitted):
    """An encoder, the untrained backbone by default, whitened on a text
    (https://arxiv.org/abs/2103.15316)."""

    map_class = Whitened
    paper_row = "BERT-whitening"


@register("flow")
class BertFlow(Fitted):
    """An encoder, the untrained backbone by default, and a flow to a unit Gaussian
    (https://arxiv.org/abs/2011.05864)."""

    map_class = Flowed
    paper_row = "BERT-flow"
