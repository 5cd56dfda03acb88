"""What a method is: towers, named loss terms, an embedding. The registry makes `method="jtcse"` a setting.

The trainer, the ablations, the playground and the sweeps use a method through this class and through nothing else.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import ClassVar

from einops import rearrange
from jaxtyping import Float, Int
from torch import Tensor, nn

from cselab.data.augment import Tokens, augmented, checked
from cselab.errors import SettingsError, suggest
from cselab.methods.context import StepContext
from cselab.methods.own_code import own_code as code_of
from cselab.methods.terms import KNOBS, NEED_CLEAN, SHARED, SpaceViews, knobs_of, weights_of
from cselab.models import SentenceEncoder, TwinEncoder
from cselab.models.encode import evaluating
from cselab.settings import Settings

Batch = dict[str, Tensor]
"""`input_ids` and `attention_mask`, (B, L) each. In training B = views * N, view-major: all first views, then all second; and
`text_hash`, (N,), equal for equal sentences: duplicates in a batch are no negatives of each other."""

Vectors = dict[str, Float[Tensor, "views N d"]]
Ids = Int[Tensor, " N"] | None


class Method(nn.Module, ABC):
    """An encoder and the terms it is trained by. Subclass it, and `@register("name")` it.

    `encoder` is a `SentenceEncoder` or a `TwinEncoder`: what `embed` calls and what is saved. Whatever else a
    method trains (heads, projectors) is an attribute of the method and is left behind at inference.

    views: how many texts or dropout passes of a sentence a batch holds: 2, or 3 for triplets, or 1.
    keeps_apart: whether embeddings that all become alike are a failure; a student is to follow its teacher even then.
    spaces: the names under which `rows` gives sentence vectors; a shared term is summed over them.
    own_terms: terms that are methods of the class, of (vectors, context, ids); `default_terms` are trained where
        `settings.terms` names none. text_terms: those that read more of the text than the vectors of `spaces`.
    augment: names of `cselab.data.augment`, what changes each view's text; none where `()`. `settings.augment` goes first.
    knobs: numbers of the method's own, "name:value" with the paper's value; `self.knob` has them, or what `settings.knobs` says.

    Raises SettingsError for a term, view or knob that there is not, naming the nearest, and for other than one name of `augment` a view.
    """

    tower_names: ClassVar[tuple[str, ...]] = ("i",)
    views: ClassVar[int] = 2
    keeps_apart: ClassVar[bool] = True
    spaces: ClassVar[tuple[str, ...]] = ("sentence",)
    own_terms: ClassVar[tuple[str, ...]] = ()
    text_terms: ClassVar[tuple[str, ...]] = ()
    default_terms: ClassVar[tuple[str, ...]] = ("nce",)
    augment: ClassVar[tuple[str, ...]] = ()
    knobs: ClassVar[tuple[str, ...]] = ()

    def __init__(self, encoder: SentenceEncoder | TwinEncoder, settings: Settings):
        super().__init__()
        self.encoder = encoder
        self.settings = settings
        self.terms = self.wanted(settings)
        self.knob = knobs_of(settings.knobs, (*KNOBS, *self.knobs))
        self.view_names = checked(settings.augment or self.augment, self.views)

    @cached_property
    def tokens(self) -> Tokens:
        """What views know of the vocabulary."""
        return Tokens.of(self.encoder.tokenizer)

    @classmethod
    def wanted(cls, settings: Settings) -> Mapping[str, float]:
        """Weights by name of the terms to train."""
        return weights_of(settings.terms or cls.default_terms, (*cls.own_terms, *SHARED))

    @classmethod
    @abstractmethod
    def build(cls, settings: Settings, towers: Sequence[str | Path]) -> "Method":
        """The method with its towers loaded from `towers`, one folder or hub name for each of `tower_names`."""

    @abstractmethod
    def rows(self, batch: Batch) -> dict[str, Float[Tensor, "B d"]]:
        """All that the terms read, by name, one row a row of the batch. Every vector must be read by a term."""

    def forward(self, batch: Batch) -> Vectors:
        """What the loss reads of a batch of views * N rows, (views, N, d) each; all that has parameters is in here. With a
        term that asks for it also `<space>_clean`, (1, N, d): the first views' text without dropout.

        The engine may compute parts of a batch on several processes, or one after the other, and gives `compare` the whole.
        """
        seen = augmented(batch, self.view_names, self.tokens) if self.view_names else batch
        vectors = {name: rearrange(rows, "(v n) d -> v n d", v=self.views) for name, rows in self.rows(seen).items()}
        if NEED_CLEAN & self.terms.keys():
            with evaluating(self):
                clean = self.clean(batch)
            vectors |= {f"{space}_clean": rearrange(clean[space], "n d -> 1 n d") for space in self.spaces}
        return vectors

    def clean(self, batch: Batch) -> dict[str, Float[Tensor, "N d"]]:
        """What `rows` gives of the first views' text; called without dropout. Override it where views differ in more than text."""
        return self.rows(self.texts(batch))

    def texts(self, batch: Batch, view: int = 0) -> Batch:
        """The sentences of one view, as the batch has them."""
        return {name: batch[name].chunk(self.views)[view] for name in ("input_ids", "attention_mask")}

    def compare(self, vectors: Vectors, context: StepContext, ids: Ids = None) -> dict[str, Float[Tensor, ""]]:
        """The named terms of the loss, weighted, on a whole batch's vectors; training minimises their sum. ids: its
        `text_hash`."""
        return {
            name: weight
            * (getattr(self, name) if name in self.own_terms else self._shared(name))(vectors, context, ids)
            for name, weight in self.terms.items()
        }

    def _shared(self, name: str) -> Callable[[Vectors, StepContext, Ids], Float[Tensor, ""]]:
        def term(vectors: Vectors, context: StepContext, ids: Ids) -> Float[Tensor, ""]:
            total = 0.0
            for space in self.spaces:
                clean = vectors[f"{space}_clean"][0] if f"{space}_clean" in vectors else None
                total = total + SHARED[name](SpaceViews(vectors[space], clean, ids, context, self.settings, self.knob))
            return total

        return term

    def advance(self, vectors: Vectors) -> None:
        """Called after each step of the optimiser with the whole batch's vectors, without their graph: for what follows the encoder
        or remembers its vectors (`cselab.methods.memory`)."""

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


def own_code(name: str) -> str:
    """The code of the method `name` as far as a user wrote it (see `cselab.methods.own_code`); "" for the library's methods.

    Raises SettingsError for an unknown name, with the nearest.
    """
    return code_of(registered(name))


def registered(name: str) -> type[Method]:
    """The class of a method. Raises SettingsError for an unknown name, with the nearest."""
    if name not in _REGISTRY:
        raise SettingsError(f"unknown method {name!r}; {suggest(name, _REGISTRY)}")
    return _REGISTRY[name]


def create(name: str, settings: Settings, towers: Sequence[str | Path] | None = None) -> Method:
    """The method `name`, its towers loaded from `towers`, or from `settings.backbone` each.

    Raises SettingsError for an unknown name (with the nearest) or a wrong number of towers.
    """
    method = registered(name)
    towers = [settings.backbone] * len(method.tower_names) if towers is None else towers
    if len(towers) != len(method.tower_names):
        raise SettingsError(
            f"method {name!r} has {len(method.tower_names)} towers {method.tower_names}, got {len(towers)}"
        )
    return method.build(settings, towers)
