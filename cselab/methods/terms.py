"""Loss terms: what a term of a method is, and the shared ones that any method can add by name.

A shared term needs two views of a sentence in one space, and nothing else of the method. A method
has terms of its own besides (a twin's "icnce", "ictm"): its methods that are marked by `@term`.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import FunctionType
from typing import Any, ClassVar, Literal

import torch
from jaxtyping import Float
from pydantic import Field
from torch import Tensor

from cselab.config import Config
from cselab.errors import SettingsError, suggest
from cselab.losses import (
    arc_con,
    barlow_twins,
    dimension_contrast,
    group_whiten,
    info_nce,
    off_dropout_info_nce,
    rank_consistency,
)
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
    """What a bare number sets."""
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
    if isinstance(given, str):
        given = [part.strip() for part in given.split(",")]
    if isinstance(given, Sequence):
        if doubled := [name for name in given if list(given).count(name) > 1]:
            raise ValueError(f"the term {doubled[0]!r} is named twice; name it once, with a weight")
        given = {str(name): {} for name in given}
    if not isinstance(given, Mapping):
        raise ValueError(f'expected names or weights, such as {{"nce": 1}}, got {given!r}')
    found = {}
    for name, value in given.items():
        if name not in offered:
            raise ValueError(f"unknown term {name!r}; {suggest(name, offered)}")
        kind = offered[name]
        if not isinstance(value, kind):
            if isinstance(value, TermConfig):
                value = value.model_dump()
            value = kind(**value) if isinstance(value, Mapping) else kind(weight=value)
        if value.weight:
            found[name] = value
    if not found:
        raise ValueError(f"no term is left; give one of {', '.join(sorted(offered))} a weight")
    return found


def kept(given: Any, before: Mapping[str, TermConfig]) -> Any:
    """`given` terms, a name or a weight of one that was there `before` with its hyperparameters."""
    if isinstance(given, str):
        given = [part.strip() for part in given.split(",")]
    if isinstance(given, Mapping):
        return {
            name: before[name].with_value(("weight",), weight)
            if name in before and isinstance(weight, (int, float))
            else weight
            for name, weight in given.items()
        }
    if isinstance(given, Sequence) and len(set(map(str, given))) == len(given):
        return {str(name): before.get(str(name), {}) for name in given}
    return given


def term(
    config: type[TermConfig] | Callable[..., Any] = TermConfig, *, reads_text: bool = False
) -> Any:
    """Mark a method of a `Method` as one of its loss terms: `term(self, outputs, step) -> scalar`.

    Args:
        config: The term's configuration, if it has hyperparameters.
        reads_text: Whether the term reads more of the text than the vectors of the method's spaces,
            so that it cannot move bare points.

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
        return function

    return mark


@dataclass(frozen=True)
class Space:
    """What a shared term reads of one space (a tower's sentence vectors).

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


SharedTerm = Callable[[Space, Any], Float[Tensor, ""]]
SHARED: dict[str, tuple[type[TermConfig], SharedTerm]] = {}
"""Shared terms by name: configuration and function."""


def shared_term(name: str, config: type[TermConfig] = TermConfig) -> Callable:
    """Function decorator: offer a term as `name` to every method with two views.

    The function takes a `Space` and the term's configuration. Methods that are defined before it do
    not have the term.
    """

    def add(function: SharedTerm) -> SharedTerm:
        SHARED[name] = (config, function)
        return function

    return add


class InfoNCE(TermConfig):
    """SimCSE's InfoNCE."""

    layout: Literal["cross", "all"] = "cross"
    """"cross": the papers'. "all": 2N x 2N, as the released TNCSE and JTCSE have it."""


class OffDropout(TermConfig):
    """ImSimCSE's InfoNCE with negatives that have no dropout noise."""

    needs_clean: ClassVar[bool] = True
    negative_weight: float = Field(0.9, gt=0)
    """ImSimCSE Eq. 3: m = 0.9."""
    positive_scale: float = Field(1.0, gt=0)
    """Released ImSimCSE: pos_ratio, 0.9 in one script, 1 in the combined one."""


class DCL(TermConfig):
    """ImSimCSE's contrast between dimensions."""

    weight: float = Field(0.1, ge=0)
    """ImSimCSE's lambda."""
    temperature: float = Field(5.0, ge=1e-4, le=1e4)
    """ImSimCSE: 5."""
    variant: Literal["paper", "released"] = "released"
    """What weight 0.1 and temperature 5 belong to: ImSimCSE's text and its code differ."""


class Barlow(TermConfig):
    """Barlow Twins."""

    artificial_rows: int = Field(0, ge=0)
    """Gaussian rows in the correlation (ImSimCSE Table 2: 0 to 704)."""


class Arc(TermConfig):
    """ArcCSE's InfoNCE with a margin on the positive's angle."""

    margin: float = 10.0
    """Degrees; ArcCSE: 10."""


class Whitening(TermConfig):
    """WhitenedCSE's InfoNCE of group-whitened views."""

    repeats: int = Field(3, ge=1)
    """Shuffles a step; ours."""
    group_size: int = Field(32, ge=1)
    """Features a group, at most all; ours: fewer than a batch has sentences."""


@shared_term("nce", InfoNCE)
def nce(space: Space, config: InfoNCE) -> Float[Tensor, ""]:
    """SimCSE Eq. 4 (https://arxiv.org/abs/2104.08821), or the released twins' layout."""
    return info_nce(
        *space.views, temperature=space.temperature, layout=config.layout, ids=space.step.ids
    )


@shared_term("off_info", OffDropout)
def off_info(space: Space, config: OffDropout) -> Float[Tensor, ""]:
    """ImSimCSE Eq. 3 (https://arxiv.org/abs/2305.13192): negatives without dropout."""
    a, b = space.views
    return off_dropout_info_nce(
        a,
        b,
        space.clean,
        temperature=space.temperature,
        negative_weight=config.negative_weight,
        positive_scale=config.positive_scale,
        ids=space.step.ids,
    )


@shared_term("dcl", DCL)
def dcl(space: Space, config: DCL) -> Float[Tensor, ""]:
    """ImSimCSE Eq. 5 (https://arxiv.org/abs/2305.13192): dimensions against dimensions."""
    return dimension_contrast(*space.views, temperature=config.temperature, variant=config.variant)


@shared_term("barlow", Barlow)
def barlow(space: Space, config: Barlow) -> Float[Tensor, ""]:
    """Barlow Twins (https://arxiv.org/abs/2103.03230), ImSimCSE Eq. 4.

    The Gaussian rows are the same on every process.
    """
    rows = config.artificial_rows
    generator = space.step.generator() if rows else None
    return barlow_twins(*space.views, artificial_rows=rows, generator=generator)


@shared_term("arc", Arc)
def arc(space: Space, config: Arc) -> Float[Tensor, ""]:
    """ArcCSE's ArcCon (https://aclanthology.org/2022.acl-long.336)."""
    return arc_con(
        *space.views, margin=config.margin, temperature=space.temperature, ids=space.step.ids
    )


@shared_term("rank")
def rank(space: Space, config: TermConfig) -> Float[Tensor, ""]:
    """RankCSE (https://arxiv.org/abs/2305.16726): both views agree on a sentence's neighbours."""
    return rank_consistency(*space.views, temperature=space.temperature)


@shared_term("whitened", Whitening)
def whitened(space: Space, config: Whitening) -> Float[Tensor, ""]:
    """WhitenedCSE (https://arxiv.org/abs/2305.17746): InfoNCE of each view after group whitening.

    Features are shuffled anew each time; a mean over `repeats`.

    Raises:
        SettingsError: For a group size that does not divide the features.
    """
    generator, (a, b) = space.step.generator(), space.views
    d = a.shape[1]
    size = min(config.group_size, d)
    if d % size:
        valid = ", ".join(str(n) for n in range(1, d + 1) if d % n == 0)
        raise SettingsError(
            f"terms.whitened.group_size={size} does not divide the {d} features; use one of {valid}"
        )
    total = 0.0
    for _ in range(config.repeats):
        orders = (torch.randperm(d, generator=generator).to(a.device) for _ in range(2))
        white = (
            group_whiten(view, order, groups=d // size)
            for view, order in zip((a, b), orders, strict=True)
        )
        loss = info_nce(*white, temperature=space.temperature, ids=space.step.ids)
        total = total + loss / config.repeats
    return total


@shared_term("self_contrast")
def self_contrast(space: Space, config: TermConfig) -> Float[Tensor, ""]:
    """SCD (https://arxiv.org/abs/2203.07847): the mean cosine of a sentence's two views.

    It is to be small; another term keeps the views from falling apart.
    """
    return torch.cosine_similarity(*space.views, dim=-1).mean()
