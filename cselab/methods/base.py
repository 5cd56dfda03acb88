"""What a method is: towers, named loss terms, an embedding. The registry makes `method="jtcse"` a setting.

The trainer, the ablations, the playground and the sweeps use a method through this class and through nothing else.
"""

import random
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from jaxtyping import Float, Int
from torch import Tensor, nn

from cselab.errors import SettingsError, suggest
from cselab.models import SentenceEncoder, TwinEncoder
from cselab.settings import Settings

Batch = dict[str, Tensor]
"""`input_ids` and `attention_mask`, (B, L) each. In training B = 2N, view-major: all first views, then all second; and
`text_hash`, (N,), equal for equal sentences: duplicates in a batch are no negatives of each other."""

Vectors = dict[str, Float[Tensor, "views N d"]]
Ids = Int[Tensor, " N"] | None


@dataclass(frozen=True)
class StepContext:
    """What a loss may know about the step: its number and a fair coin (JTCSE Eq. 12)."""

    step: int
    coin: bool

    @classmethod
    def at(cls, seed: int, step: int) -> "StepContext":
        """The same (seed, step) gives the same coin on every process and in every replay."""
        return cls(step=step, coin=random.Random(f"coin {seed} {step}").random() < 0.5)


class Method(nn.Module, ABC):
    """An encoder and the terms it is trained by. Subclass it, and `@register("name")` it.

    `encoder` is a `SentenceEncoder` or a `TwinEncoder`: what `embed` calls and what is saved. Whatever else a
    method trains (heads, projectors) is an attribute of the method and is left behind at inference.
    """

    tower_names: ClassVar[tuple[str, ...]] = ("i",)

    def __init__(self, encoder: SentenceEncoder | TwinEncoder):
        super().__init__()
        self.encoder = encoder

    @classmethod
    @abstractmethod
    def build(cls, settings: Settings, towers: Sequence[str | Path]) -> "Method":
        """The method with its towers loaded from `towers`, one folder or hub name for each of `tower_names`."""

    @abstractmethod
    def forward(self, batch: Batch) -> Vectors:
        """What the loss reads of a two-view batch of 2N rows, by name, (2, N, d) each. All that has parameters is in here.

        Every vector must be read by a term: the engine may compute parts of a batch on several processes, or one after
        the other, and gives `compare` the whole.
        """

    @abstractmethod
    def compare(self, vectors: Vectors, context: StepContext, ids: Ids = None) -> dict[str, Float[Tensor, ""]]:
        """The named terms of the loss on a whole batch's vectors; training minimises their sum. ids: its `text_hash`."""

    def losses(self, batch: Batch, context: StepContext) -> dict[str, Float[Tensor, ""]]:
        """The same from the batch itself."""
        return self.compare(self(batch), context, batch.get("text_hash"))

    @property
    def towers(self) -> dict[str, nn.Module]:
        """The stock transformers models inside, by tower name."""
        return dict(zip(self.tower_names, self.encoder.backbones, strict=True))

    def embed(self, batch: Batch) -> Float[Tensor, "B d"]:
        """Sentence embeddings at inference."""
        return self.encoder.embed(batch)


_REGISTRY: dict[str, type[Method]] = {}


def register(name: str) -> Callable[[type[Method]], type[Method]]:
    """Class decorator: make a method available to `create` (and so to settings, sweeps and notebooks) as `name`."""

    def add(method: type[Method]) -> type[Method]:
        _REGISTRY[name] = method
        return method

    return add


def create(name: str, settings: Settings, towers: Sequence[str | Path] | None = None) -> Method:
    """The method `name`, its towers loaded from `towers`, or from `settings.backbone` each.

    Raises SettingsError for an unknown name (with the nearest) or a wrong number of towers.
    """
    if name not in _REGISTRY:
        raise SettingsError(f"unknown method {name!r}; {suggest(name, _REGISTRY)}")
    method = _REGISTRY[name]
    towers = [settings.backbone] * len(method.tower_names) if towers is None else towers
    if len(towers) != len(method.tower_names):
        raise SettingsError(
            f"method {name!r} has {len(method.tower_names)} towers {method.tower_names}, got {len(towers)}"
        )
    return method.build(settings, towers)
