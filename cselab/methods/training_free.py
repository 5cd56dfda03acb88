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
    """Materials of an encoder: the encoders of its configuration's parts, in order, the first
    so many sentences (or all) of the text it is fitted to, and the folder of a backbone's name."""

    parts: Sequence[Any]
    text: Callable[[int | None], Iterable[str]]
    folder: Callable[[str], Path]
    device: Any = "cpu"


class TrainingFree(Configured, ABC):
    """A method that is not trained: `encoder` makes what encodes sentences."""

    Config: ClassVar[type[MethodConfig]] = MethodConfig

    @classmethod
    def check(cls, config: Any, parts: Sequence[Encoder], sentences: int) -> None:
        """Raise a CselabError for a text too small to be fitted to; parts are untrained yet."""

    @classmethod
    @abstractmethod
    def encoder(cls, config: Any, materials: Materials) -> Encoder:
        """Make the encoder, whose `encode(sentences)` is the method."""
