"""Methods without training of their own: sums of encoders, maps after one, counts."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from cselab.methods.nodes import MethodConfig
from cselab.methods.registry import Configured
from cselab.models.encode import Encoder


@dataclass(frozen=True)
class Materials:
    """The parts, text and folders that an encoder is made of.

    Attributes:
        parts: The encoders of the configuration's parts, in order.
        text: The first so many sentences of the text that the method is fitted to, or all of them.
        folder: The local folder of a backbone, by name.
        device: Where encoders run.
    """

    parts: Sequence[Any]
    text: Callable[[int | None], Iterable[str]]
    folder: Callable[[str], Path]
    device: Any = "cpu"


class TrainingFree(Configured, ABC):
    """A method that is not trained: `encoder` makes what encodes sentences.

    Examples:
        >>> from cselab import load
        >>> from cselab.data.hub import model_folder
        >>> from cselab.methods import registered
        >>> from cselab.methods.training_free import Materials
        >>> parts = [load("tiny-bert"), load("plain-bert")]
        >>> kind = registered("sum")
        >>> materials = Materials(parts, text=lambda n: [], folder=model_folder)
        >>> type(kind.encoder(kind.Config(), materials)).__name__  # two plain towers
        'TwinEncoder'
    """

    Config: ClassVar[type[MethodConfig]] = MethodConfig

    @classmethod
    def check(cls, config: Any, parts: Sequence[Encoder], sentences: int) -> None:
        """Raise a CselabError if the text's number of sentences is too small to be fitted to.

        Called with untrained parts, before the first training.
        """

    @classmethod
    @abstractmethod
    def encoder(cls, config: Any, materials: Materials) -> Encoder:
        """Make the encoder, whose `encode(sentences)` is the method."""
