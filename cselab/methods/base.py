"""Trained methods: an encoder, named loss terms, an embedding.

A step of training, as one reads a method (the trainer, the ablations, the playground and the sweeps
use nothing else):

    outputs = forward(batch)                        # rows: the vectors of all texts, view by view
    for name, config in terms:                      # compare
        own term:     value = name(outputs, step)   # a function marked by @term
        shared term:  value = sum(SHARED[name](space, config) for space in spaces(outputs, step))
    loss = sum of weight * value
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

from einops import rearrange
from jaxtyping import Float
from torch import Tensor, nn

from cselab.data.augment import Tokens, augment, check_view_names
from cselab.errors import SettingsError
from cselab.methods import shared_terms  # noqa: F401  fills SHARED
from cselab.methods.nodes import Augmented, TrainedConfig
from cselab.methods.registry import Configured, registered
from cselab.methods.terms import SHARED, Space, StepContext, TermConfig, Terms
from cselab.models import SentenceEncoder, TwinEncoder
from cselab.models.encode import Encoder, evaluating

Folders = Sequence[str | Path]
"""Folders of models, one for each tower."""
Batch = dict[str, Tensor]
"""`input_ids` and `attention_mask`, (B, L) each. In training B = views * N, view-major: all first
views, then all second; and `text_hash`, (N,), equal for equal sentences."""


@dataclass(frozen=True)
class Outputs:
    """Vectors of a batch, (views, N, d) tensors; None where no term reads one.

    Subclass it for a method with vectors of its own. Every tensor must be read by a term.
    """

    def tensors(self) -> dict[str, Tensor]:
        """The tensors that are not None, by field."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        return {name: tensor for name, tensor in values.items() if tensor is not None}

    def map(self, change: Callable[[Tensor], Tensor]) -> "Outputs":
        """The same with `change` applied to each tensor."""
        return replace(self, **{name: change(rows) for name, rows in self.tensors().items()})


@dataclass(frozen=True)
class SentenceOutputs(Outputs):
    """Vectors of a method of one tower.

    Attributes:
        sentence: Vectors of each view, (views, N, d).
        clean: Vectors of the first view's texts without dropout, (1, N, d).
        extra: What a method's own terms read besides, (any, N, any); the method says what it is.
    """

    sentence: Tensor
    clean: Tensor | None = None
    extra: Any = None

    def with_clean(self, clean: "SentenceOutputs") -> "SentenceOutputs":
        """The same with the vectors of a pass without dropout."""
        return replace(self, clean=clean.sentence)


class Method(nn.Module, Configured, ABC):
    """An encoder and the terms it is trained by: `Method(encoder, config)`.

    The encoder is what `embed` calls and what is saved; whatever else a method trains (heads,
    projectors) is an attribute of the method and is left behind at inference. A term is a method
    marked by `@term`, or a shared one; the configuration, `self.settings`, says which are trained.
    (transformers' Trainer writes into a model's `config`.)

    Attributes:
        views: Number of texts or dropout passes of a sentence in a batch: 2, 3 for triplets, or 1.
        tower_names: Names of the encoder's towers.
        space_names: Names of `spaces`, for figures.
        reads: Kind of its training rows, "text" or "triplets".
        own_views: Names of the augmented views that its forward pass adds to those of `augment`.
        keeps_apart: Whether embeddings that all become alike are a failure.

    Raises:
        SettingsError: For a name of `augment` that is unknown, and for other than one a view.
    """

    Config: ClassVar[type[TrainedConfig]] = TrainedConfig
    tower_names: ClassVar[tuple[str, ...]] = ("i",)
    space_names: ClassVar[tuple[str, ...]] = ("sentence",)
    views: ClassVar[int] = 2
    reads: ClassVar[str] = "text"
    own_views: ClassVar[tuple[str, ...]] = ()
    keeps_apart: ClassVar[bool] = True
    own_terms: ClassVar[dict[str, type[TermConfig]]] = {}

    def __init_subclass__(cls, **options) -> None:
        super().__init_subclass__(**options)
        own = {name: item.term for name, item in vars(cls).items() if hasattr(item, "term")}
        cls.own_terms = {**cls.own_terms, **own}
        shared = SHARED if cls.views > 1 else {}  # they compare the views of a sentence
        offered = {name: function.term for name, function in shared.items()}
        cls.Config.offered = {**offered, **cls.own_terms}

    def __init__(self, encoder: SentenceEncoder | TwinEncoder, config: TrainedConfig):
        super().__init__()
        self.encoder: Any = encoder  # these two are of each method's own kinds
        self.settings: Any = config
        views = config.augment if isinstance(config, Augmented) else ()
        self.augment = check_view_names(views, self.views)

    @property
    def terms(self) -> Terms:
        """The terms that are trained, by name."""
        return self.settings.terms

    @cached_property
    def tokens(self) -> Tokens:
        """The vocabulary as augmented views read it."""
        return Tokens.of(self.encoder.tokenizer)

    @classmethod
    @abstractmethod
    def build(cls, config: Any, folders: Folders) -> "Method":
        """The method with its towers loaded from `folders`, one for each of `tower_names`."""

    @classmethod
    def targets(cls, teachers: Sequence[Encoder]) -> Callable[[list[str]], Tensor] | None:
        """For a student: a function from sentences to the vectors, (n, d), that it learns."""
        return None

    @abstractmethod
    def rows(self, batch: Batch) -> Outputs:
        """All that the terms read, one row a row of the batch."""

    def spaces(self, outputs: Any, step: StepContext) -> list[Space]:
        """Inputs of the shared terms, which sum over them; by default one tower's vectors."""
        clean = None if outputs.clean is None else outputs.clean[0]
        return [Space(outputs.sentence[:2], clean, step, self.settings.temperature)]

    @classmethod
    def placed(cls, points: Sequence[Float[Tensor, "2 N d"]]) -> Any:
        """Outputs whose vectors are bare points, one tensor a space, for the playground."""
        return SentenceOutputs(points[0], clean=points[0].mean(0, keepdim=True))

    def forward(self, batch: Batch) -> Any:
        """Compute what the loss reads of views * N rows; all that has parameters is in here.

        The trainer may compute parts of a batch on several processes, or one after the other, and
        gives `compare` the whole.
        """
        seen = augment(batch, self.augment, self.tokens) if self.augment else batch
        outputs: Any = self.rows(seen).map(lambda x: rearrange(x, "(v n) d -> v n d", v=self.views))
        if any(config.needs_clean for config in self.terms.values()):
            with evaluating(self):
                clean = self.clean(batch)
            outputs = outputs.with_clean(clean.map(lambda x: x[None]))
        return outputs

    def clean(self, batch: Batch) -> Outputs:
        """The `rows` of the first views' texts, called without dropout; override it where views
        differ in more than text."""
        return self.rows(self.texts(batch))

    def texts(self, batch: Batch, view: int = 0) -> Batch:
        """The sentences of one view, as the batch has them."""
        names = ("input_ids", "attention_mask")
        return {name: batch[name].chunk(self.views)[view] for name in names}

    def compare(self, outputs: Outputs, step: StepContext) -> dict[str, Float[Tensor, ""]]:
        """The terms of the loss, weighted, on a whole batch; training minimises their sum."""
        return {
            name: config.weight * self._term(name, config, outputs, step)
            for name, config in self.terms.items()
        }

    def _term(
        self, name: str, config: TermConfig, outputs: Outputs, step: StepContext
    ) -> Float[Tensor, ""]:
        if name not in self.own_terms:
            total = 0.0
            for space in self.spaces(outputs, step):
                total = total + SHARED[name](space, config)
            return total
        value = getattr(self, name)(outputs, step)
        if not isinstance(value, Tensor) or value.ndim:
            kind = tuple(value.shape) if isinstance(value, Tensor) else type(value).__name__
            raise SettingsError(
                f"term {name!r} gives {kind}, expected one number, such as a mean over sentences"
            )
        return value

    def losses(self, batch: Batch, step: StepContext) -> dict[str, Float[Tensor, ""]]:
        """The terms of a batch of views * N rows by name, weighted; the total is their sum."""
        ids = batch.get("text_hash", step.ids)
        return self.compare(self(batch), replace(step, ids=ids))

    def after_step(self, outputs: Any) -> None:
        """Called after each step of the optimiser, with the vectors of the whole batch and no
        graph: for what follows the encoder or remembers vectors (`baselines.memory`)."""

    @property
    def towers(self) -> dict[str, nn.Module]:
        """The stock transformers models inside, by tower name."""
        return dict(zip(self.tower_names, self.encoder.backbones, strict=True))

    def embed(self, batch: Batch) -> Float[Tensor, "B d"]:
        """Sentence embeddings at inference."""
        return self.encoder.embed(batch)


def create(
    method: str | TrainedConfig,
    config: TrainedConfig | None = None,
    folders: Folders | None = None,
) -> Method:
    """A method ready to be trained: by name or by its configuration.

    Args:
        method: A registered name, or a configuration alone.
        config: The configuration, where `method` is a name; None: the paper's.
        folders: Models that the towers are loaded from, one each; None: the configuration's.

    Raises:
        SettingsError: For an unknown name, a method without training, and a wrong number of
            folders.

    Examples:
        >>> from cselab.data.hub import model_folder
        >>> from cselab.methods import create, registered
        >>> config = registered("simcse").Config(terms={"nce": 1, "dcl": 0.1}, temperature=0.1)
        >>> method = create(config, folders=[model_folder("tiny-bert")])
        >>> list(method.terms), method.settings.temperature
        (['nce', 'dcl'], 0.1)
    """
    if isinstance(method, TrainedConfig):
        config = method
    kind = registered(method if isinstance(method, str) else method.method)
    if not issubclass(kind, Method):
        raise SettingsError(f"{kind.Config.name!r} is not trained; cselab.experiments builds it")
    config = config or kind.Config()
    if folders is None:
        folders = [start.pretrained_model for start in config.starts or (config,)]
    towers = kind.tower_names
    if len(folders) != len(towers):
        raise SettingsError(
            f"method {config.method!r} has {len(towers)} towers {towers}, got {len(folders)}"
        )
    return kind.build(config, folders)
