"""Nodes of a run's tree: the settings of a method, trained or not, and the nodes it starts from."""

from collections.abc import Callable
from functools import partial
from typing import Annotated, Any, ClassVar, Literal, get_args

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    SerializeAsAny,
    field_validator,
    model_validator,
)

from cselab.config import Config, Path, is_off, is_shared, shared
from cselab.data.settings import RoundTrips
from cselab.errors import SettingsError, suggest
from cselab.methods import registry
from cselab.methods.terms import TermConfig, Terms, read_terms, with_hyperparameters
from cselab.paths import located


class Schedule(Config):
    """Settings of `cselab.training.fit`."""

    steps: int | None = Field(None, ge=1)
    """None: `epochs` over the training rows."""
    epochs: float = Field(1.0, gt=0)
    batch_size: int = Field(ge=2)
    learning_rate: float = Field(gt=0)
    max_length: int = Field(ge=4)
    """Tokens of a sentence; the rest is cut off."""
    eval_every: int = Field(ge=1)
    """Steps between two scores on the dev split, which pick the checkpoint."""
    decay: Literal["linear", "constant"] = "linear"
    warmup: int = Field(0, ge=0)
    """Steps in which the rate rises from 0."""
    weight_decay: float = Field(0.0, ge=0)
    max_grad_norm: float = Field(0.0, ge=0)
    """Gradients longer than this are scaled to it; 0 is no clipping."""
    by_length: bool = shared(True)
    """Batches of sentences of similar length; the released codes draw each batch at random."""
    mask_duplicates: bool = shared(True)
    """Equal sentences of a batch are no negatives of each other; in the released codes they are."""
    bf16: Literal[True, False, "auto"] = shared(False)
    """Autocast matrix products to bfloat16; "auto": where the device has matrix units for it."""
    compile: bool = shared(False)
    """torch.compile; on a processor it needs a C++ compiler."""
    chunk: int = shared(0, ge=0)
    """Sentences whose graph is kept at a time, by cached gradients; 0 is the whole batch."""

    def steps_for(self, rows: int) -> int:
        """The number of steps over so many training rows."""
        return self.steps or max(1, round(self.epochs * (rows // self.batch_size)))


Role = Literal["single", "twin", "triplets", "decoder", "student"]
"""Kinds of methods by the budget that a profile gives them."""
MODEL = "a model"
ModelName = Annotated[str, MODEL, AfterValidator(partial(located, folders=True))]
"""A shipped name, a folder, or a name on the hub; keys hold the content of the model."""


class MethodConfig(Config):
    """A node: everything a method depends on besides the data, and nothing else.

    Its class is `Config` inside the method's class, and knows the name the method is registered by.
    """

    main: ClassVar[str] = "method"
    name: ClassVar[str] = ""
    role: ClassVar[Role] = "single"
    outsiders: ClassVar[tuple[str, ...]] = ()
    """Fields of parts that stay BERTs where the backbone is a RoBERTa, unless a path names it."""
    carried: ClassVar[tuple[str, ...]] = ("seed", "schedule", "round_trips")
    """Fields kept, besides shared ones, when a path replaces the method of a node; the schedule
    only where the role is the same."""

    method: str = ""
    """The registered name."""

    @model_validator(mode="before")
    @classmethod
    def _add_name(cls, values: Any) -> Any:
        return {"method": cls.name, **values} if isinstance(values, dict) else values

    @field_validator("method")
    @classmethod
    def _check_name(cls, method: str) -> str:
        if method != cls.name:
            raise ValueError(f"this is the configuration of {cls.name!r}")
        return method

    @classmethod
    def __pydantic_init_subclass__(cls, **options: Any) -> None:
        super().__pydantic_init_subclass__(**options)
        if cls.role not in get_args(Role):
            raise SettingsError(f"{cls.__qualname__}.role: {suggest(cls.role, get_args(Role))}")

    @property
    def pretrained_model(self) -> str:
        """The model that the node starts from; "" where it starts from other nodes."""
        return getattr(self, self.model_setting) if self.model_setting else ""

    @property
    def model_setting(self) -> str:
        """The setting that names the pretrained model: "backbone", "decoder", or "" for none."""
        fields = type(self).model_fields.items()
        return next((name for name, field in fields if MODEL in field.metadata), "")

    @property
    def part_fields(self) -> dict[str, "MethodConfig | tuple[MethodConfig, ...]"]:
        """The fields that hold nodes, which come before this one: towers, members, teachers."""
        return {
            name: value
            for name, value in self
            if isinstance(value[0] if isinstance(value, tuple) and value else value, MethodConfig)
        }

    @property
    def parts(self) -> tuple["MethodConfig", ...]:
        """The nodes that come before this one."""
        fields = self.part_fields.values()
        return tuple(
            n for value in fields for n in (value if isinstance(value, tuple) else [value])
        )

    @property
    def starts(self) -> tuple["MethodConfig", ...]:
        """The towers that it is built from, which are trained before it."""
        towers: Any = self.part_fields.get("towers", ())
        return towers

    @property
    def trips(self) -> RoundTrips | None:
        """Round trips of its training text, if it reads any."""
        return next((value for _, value in self if isinstance(value, RoundTrips)), None)

    def with_parts(
        self, change: Callable[["MethodConfig", int | None], "MethodConfig"]
    ) -> "MethodConfig":
        """The node with `change(part, i)` in the place of each part, the ith of a tuple (None
        outside of one)."""
        changed = {
            name: tuple(change(part, i) for i, part in enumerate(value))
            if isinstance(value, tuple)
            else change(value, None)
            for name, value in self.part_fields.items()
        }
        return self.model_copy(update=changed)

    def seeded(self, seed: int, *, one_seed: bool = False) -> "MethodConfig":
        """The tree with its seeds: 2 * seed + i for member i of a tuple of towers, so that those of
        one seed never share batches or dropout masks; `seed` for all others, or for all."""

        def seeded(part: "MethodConfig", i: int | None) -> "MethodConfig":
            return part.seeded(seed if one_seed or i is None else 2 * seed + i, one_seed=one_seed)

        node = self.with_parts(seeded)
        return node.model_copy(update={"seed": seed}) if "seed" in type(self).model_fields else node

    def with_value(self, place: Path, value: Any) -> "MethodConfig":
        if place != ("method",) or value == self.method:
            return super().with_value(place, value)
        other = registry.registered(value).Config
        own = type(self).model_fields
        marked = {name for name, field in own.items() if is_shared(field)}
        stay = {*self.carried, *marked} & own.keys() & other.model_fields.keys()
        if other.role != self.role:  # the steps and rates of triplets are not those of sentences
            stay -= {"schedule"}
        return other(**{name: getattr(self, name) for name in stay})


def as_node(value: Any) -> Any:
    """A node from a registered name, or from a mapping with `method`."""
    if isinstance(value, str):
        return registry.registered(value).Config()
    if isinstance(value, dict):
        return registry.registered(value.get("method", "")).Config(**value)
    return value


AnyMethod = Annotated[SerializeAsAny[MethodConfig], BeforeValidator(as_node)]
"""A field that takes the node of any method."""


class TrainedConfig(MethodConfig):
    """A node that is trained."""

    offered: ClassVar[dict[str, type[TermConfig]]] = {}
    """The method's own and the shared loss terms; set by the method's class."""

    seed: int = Field(42, ge=0, lt=2**32)
    """TNCSE supplement, App. I; of batches, dropout, coins and fresh weights."""
    schedule: Schedule
    terms: Terms

    @field_validator("terms", mode="before")
    @classmethod
    def _read_terms(cls, terms: Any) -> Any:
        return read_terms(terms, cls.offered)

    def with_value(  # type: ignore[override]  # another method may have no training
        self, place: Path, value: Any
    ) -> MethodConfig:
        """New terms keep the hyperparameters of old ones of the same name."""
        if place == ("terms",):
            value = with_hyperparameters(value, self.terms)
        return super().with_value(place, value)

    def optional_paths(self):
        """Terms that are not trained yet, and their hyperparameters."""
        yield from super().optional_paths()
        for name in self.offered.keys() - self.terms.keys():
            yield ("terms", name)
            yield from (("terms", name, field) for field in self.offered[name].model_fields)


class BackboneConfig(TrainedConfig):
    """A node that is trained from a pretrained encoder."""

    backbone: ModelName = shared("google-bert/bert-base-uncased")
    """A shipped name, a folder, or a name on the hub."""
    dropout: float = Field(0.1, ge=0, lt=1)
    """BERT's."""


Pooling = Literal["cls", "mean", "first_last", "last_two", "pooler"]


class WithPooler(Config):
    """A method that may read the pooler of its backbone."""

    pooler: Literal["trained", "fresh"] = shared("trained")
    """"fresh" draws a new one where the checkpoint has none (RoBERTa of the hub)."""

    @property
    def required_pooler(self) -> Literal["required", "fresh"]:
        """The option of `load_backbone` for a method that reads the pooler."""
        return "fresh" if self.pooler == "fresh" else "required"


class WithPooling(WithPooler):
    """A method that pools one vector from a backbone."""

    pooling: Pooling = "cls"
    """SimCSE and the twins: [CLS]."""


def _names(value: Any) -> Any:
    if is_off(value):
        return ()
    return tuple(part.strip() for part in value.split(",")) if isinstance(value, str) else value


Names = Annotated[tuple[str, ...], BeforeValidator(_names)]
"""Names, also in one text with commas."""


class Augmented(Config):
    """A method whose views may have changed texts."""

    augment: Names = ()
    """Changes of the text: a name of `cselab.data.augment` a view, or nothing."""


class TwoViews(Augmented):
    """A method of two views: sources of the second, besides dropout."""

    round_trips: RoundTrips | None = None
    """None: the text alone, as SimCSE has it."""
