"""Loss terms: how a setting names them, and the decorators that mark them.

A shared term (`cselab.methods.shared_terms`) needs two views of a sentence in one space and nothing
else of the method. A method has terms of its own besides (a twin's "icnce", "ictm"): its methods
that are marked by `@term`.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import FunctionType
from typing import Any, ClassVar

from jaxtyping import Float
from pydantic import Field
from torch import Tensor

from cselab.config import Config
from cselab.errors import suggest
from cselab.methods.context import StepContext


class TermConfig(Config):
    """A term's weight; subclass it for a term with hyperparameters.

    Examples:
        >>> from cselab.methods import TermConfig
        >>> class Hinge(TermConfig):
        ...     least: float = 0.8
        >>> Hinge(weight=0.1)
        Hinge(weight=0.1, least=0.8)
    """

    main: ClassVar[str] = "weight"
    """The field that a bare number sets."""
    needs_clean: ClassVar[bool] = False
    """Whether the term reads the sentences without dropout."""

    weight: float = Field(1.0, ge=0)
    """0 leaves the term out."""


Terms = dict[str, Any]
"""The terms of a loss by name, each with a `TermConfig` of its own. Written as weights,
{"nce": 1, "ictm": 0.1}, as a list of names, or with a term's own configuration:
{"dcl": {"weight": 0.1, "temperature": 5}}."""


def read_terms(given: Any, offered: Mapping[str, type[TermConfig]]) -> dict[str, TermConfig]:
    """Terms as configurations, in the order given; those of weight 0 are left out.

    Args:
        given: Names, weights by name, or configurations by name (see `Terms`).
        offered: The terms that a method knows.

    Raises:
        ValueError: With the nearest, for a term that is not offered, for one that is named twice,
            and where none is left.
    """
    if isinstance(given, (list, tuple)):
        if repeated := [name for name in given if given.count(name) > 1]:
            raise ValueError(f"the term {repeated[0]!r} is named twice; give it a weight instead")
        given = {str(name): {} for name in given}
    if not isinstance(given, Mapping):
        raise ValueError(f'expected names or weights, such as {{"nce": 1}}, got {given!r}')
    terms = {}
    for name, value in given.items():
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


def with_hyperparameters(given: Any, before: Mapping[str, TermConfig]) -> Any:
    """`given` terms, names and bare weights with the hyperparameters that they had `before`."""
    if isinstance(given, Mapping):
        return {
            name: before[name].with_value(("weight",), weight)
            if name in before and isinstance(weight, (int, float))
            else weight
            for name, weight in given.items()
        }
    if isinstance(given, (list, tuple)) and len(set(map(str, given))) == len(given):
        return {str(name): before.get(str(name), {}) for name in given}
    return given


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
class Space:
    """The inputs of a shared term: one space (a tower's sentence vectors).

    Attributes:
        views: Two, (2, N, d).
        clean: The same sentences without dropout, (N, d), where a term of the method needs them.
        step: The step.
        temperature: The method's.
    """

    views: Float[Tensor, "2 N d"]
    clean: Float[Tensor, "N d"] | None
    step: StepContext
    temperature: float


SHARED: dict[str, Any] = {}
"""Functions of the shared terms by name."""


def shared_term(name: str, config: type[TermConfig] = TermConfig, *, script: str = "") -> Callable:
    """Function decorator: offer a term as `name` to every method with two views.

    The function takes a `Space` and the term's configuration. Methods that are defined before it do
    not have the term.

    Args:
        name: Name of the term.
        config: As in `term`.
        script: As in `term`.
    """

    def add(function: Callable[[Space, Any], Float[Tensor, ""]]) -> Any:
        SHARED[name] = term(config, script=script)(function)
        return function

    return add
