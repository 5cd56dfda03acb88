"""Maps after an encoder that are fitted to a text: BERT-whitening and BERT-flow."""

from collections.abc import Sequence
from typing import Any, ClassVar, Literal

from pydantic import Field

from cselab.errors import DataError
from cselab.methods import AnyMethod, MethodConfig, TrainingFree
from cselab.methods.training_free import Materials
from cselab.methods.untrained import Untrained
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
