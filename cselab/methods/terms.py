"""Loss terms: how a setting names them, and the decorators that mark them.

A shared term (`cselab.methods.shared_terms`) needs two views of a sentence in one space and nothing
else of the method. A method has terms of its own besides (a twin's "icnce", "ictm"): its methods
that are marked by `@term`.
"""

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import FunctionType
from typing import Any, ClassVar

import torch
from jaxtyping import Float, Int
from pydantic import Field, field_validator
from torch import Tensor

from cselab.config import Config, is_off
from cselab.errors import suggest


class TermConfig(Config):
    """A term's weight; subclass it for a term with hyperparameters."""

    main: ClassVar[str] = "weight"
    needs_clean: ClassVar[bool] = False
    """Whether the term reads the sentences without dropout."""

    weight: float = Field(1.0, ge=0)
    """0 leaves the term out."""

    @field_validator("weight", mode="before")
    @classmethod
    def _none_is_zero(cls, value: Any) -> Any:
        return 0 if is_off(value) else value


Terms = dict[str, Any]
"""The terms of a loss by name, each with a `TermConfig` of its own. Written as weights,
{"nce": 1, "ictm": 0.1}, as a list of names, or with a term's own configuration:
{"dcl": {"weight": 0.1, "temperature": 5}}."""


def read_terms(values: Any, offered: Mapping[str, type[TermConfig]]) -> dict[str, TermConfig]:
    """Read `Terms` as configurations, in their order; those of weight 0 are left out.

    Raises:
        ValueError: For a term that is not offered, or named twice, and where none is left.
    """
    if isinstance(values, (list, tuple)):
        if repeated := [name for name in values if values.count(name) > 1]:
            raise ValueError(f"the term {repeated[0]!r} is named twice; give it a weight instead")
        values = {str(name): {} for name in values}
    if not isinstance(values, Mapping):
        raise ValueError(f'expected names or weights, such as {{"nce": 1}}, got {values!r}')
    terms = {}
    for name, value in values.items():
        if name not in offered:
            raise ValueError(f"unknown term {name!r}; {suggest(name, offered)}")
        kind = offered[name]
        if not isinstance(value, kind):
            if isinstance(value, TermConfig):
                value = value.model_dump()
            value = kind(**value) if isinstance(value, Mapping) else kind(weight=value)
        if value.weight:
            terms[name] = value
    if not terms:
        raise ValueError(f"no term is left; give one of {', '.join(sorted(offered))} a weight")
    return terms


def with_hyperparameters(values: Any, before: Mapping[str, TermConfig]) -> Any:
    """`Terms`, where names and bare weights keep the hyperparameters that they had `before`."""
    if isinstance(values, Mapping):
        return {
            name: before[name].with_value(("weight",), weight)
            if name in before and isinstance(weight, (int, float))
            else weight
            for name, weight in values.items()
        }
    if isinstance(values, (list, tuple)) and len(set(map(str, values))) == len(values):
        return {str(name): before.get(str(name), {}) for name in values}
    return values


def term(
    config: type[TermConfig] | Callable[..., Any] = TermConfig,
    *,
    reads_text: bool = False,
    script: str = "",
    script_settings: tuple[str, ...] = (),
) -> Any:
    """Mark a method of a `Method` as one of its loss terms: `term(self, outputs, step) -> scalar`.

    The playground shows the first paragraph of its docstring, and the second as a formula if it
    begins with a backquote.

    Args:
        config: The term's configuration, if it has hyperparameters.
        reads_text: Whether the term reads more of the text than the vectors of the method's spaces,
            so that it cannot move bare points.
        script: The function of `losses.js` (`cselab/workbook/browser`) that computes it on a page
            without a kernel.
        script_settings: The method's settings that this function reads.

    Examples:
        >>> from cselab.methods import term
        >>> from cselab.methods.simcse import SimCSE
        >>> class Mine(SimCSE):
        ...     @term
        ...     def align(self, outputs, step):
        ...         return (outputs.sentence[0] - outputs.sentence[1]).square().sum(-1).mean()
        >>> sorted(Mine.own_terms)
        ['align']
    """
    if isinstance(config, FunctionType):
        return term()(config)

    def mark(function: Any) -> Any:
        function.term, function.reads_text = config, reads_text
        function.script, function.script_settings = script, script_settings
        return function

    return mark


@dataclass(frozen=True)
class StepContext:
    """The step of a training, as a loss sees it.

    Attributes:
        coin: A fair coin (JTCSE Eq. 12, https://arxiv.org/abs/2505.02366).
        ids: (N,), equal for equal sentences of the batch: duplicates are no negatives of each
            other.

    Examples:
        >>> from cselab.methods import StepContext
        >>> [StepContext.at(seed=1, step=step).coin for step in range(4)]
        [False, True, False, True]
    """

    seed: int
    step: int
    coin: bool
    ids: Int[Tensor, " N"] | None = None

    @classmethod
    def at(cls, seed: int, step: int, ids: Int[Tensor, " N"] | None = None) -> "StepContext":
        """The same (seed, step) gives the same coin on every process and in every replay."""
        coin = random.Random(f"coin {seed} {step}").random() < 0.5
        return cls(seed=seed, step=step, coin=coin, ids=ids)

    def generator(self) -> torch.Generator:
        """Random numbers of this step that every process and every replay draws alike."""
        seed = random.Random(f"draws {self.seed} {self.step}").getrandbits(63)
        return torch.Generator().manual_seed(seed)


@dataclass(frozen=True)
class Space:
    """The inputs of a shared term: one space (a tower's sentence vectors).

    `clean` are the same sentences without dropout, where a term of the method needs them.
    """

    views: Float[Tensor, "2 N d"]
    clean: Float[Tensor, "N d"] | None
    step: StepContext
    temperature: float

    @property
    def options(self) -> dict[str, Any]:
        """Options of InfoNCE: the temperature, and which sentences of the batch are equal."""
        return {"temperature": self.temperature, "ids": self.step.ids}


SHARED: dict[str, Any] = {}
"""Functions of the shared terms by name."""


def shared_term(name: str, config: type[TermConfig] = TermConfig, *, script: str = "") -> Callable:
    """Function decorator: offer a term as `name` to every method with two views.

    The function takes a `Space` and the term's configuration; `config` and `script` are as in
    `term`. Methods that are defined before it do not have the term.
    """

    def add(function: Callable[[Space, Any], Float[Tensor, ""]]) -> Any:
        SHARED[name] = term(config, script=script)(function)
        return function

    return add
