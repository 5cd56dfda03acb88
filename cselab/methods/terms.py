"""Loss terms that any method can add by name: they need two views of a sentence in one space, and nothing else of the method.

A method has its own terms besides (a twin's "icnce", "ictm"). `terms="nce,dcl:0.05"` gives names and, after a colon, weights.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

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
from cselab.settings import Settings


@dataclass(frozen=True)
class SpaceViews:
    """What a shared term reads of one space (a tower's sentence vectors).

    views: two, (2, N, d). clean: the same sentences without dropout, (N, d), where a term of the method asks for it.
    ids: equal for equal texts, or None.
    """

    views: Float[Tensor, "2 N d"]
    clean: Float[Tensor, "N d"] | None
    ids: Int[Tensor, " N"] | None
    context: StepContext
    settings: Settings
    knob: Mapping[str, float]


def nce(space: SpaceViews) -> Float[Tensor, ""]:
    """SimCSE's InfoNCE, in the paper's layout or the released TNCSE and JTCSE code's."""
    layout = "all" if "info_nce_layout" in space.settings.released_rows else "cross"
    return info_nce(*space.views, temperature=space.settings.temperature, layout=layout, ids=space.ids)


def off_info(space: SpaceViews) -> Float[Tensor, ""]:
    """ImSimCSE Eq. 3: negatives without dropout."""
    s = space.settings
    return off_dropout_info_nce(
        *space.views, space.clean, temperature=s.temperature, negative_weight=s.negative_weight,
        positive_scale=s.positive_scale, ids=space.ids,
    )  # fmt: skip


def dcl(space: SpaceViews) -> Float[Tensor, ""]:
    """ImSimCSE Eq. 5: dimensions against dimensions."""
    s = space.settings
    return dimension_contrast(*space.views, temperature=s.dcl_temperature, variant=s.dcl)


def barlow(space: SpaceViews) -> Float[Tensor, ""]:
    """Barlow Twins, ImSimCSE Eq. 4, with `artificial_rows` Gaussian rows that are the same on every process."""
    rows = space.settings.artificial_rows
    return barlow_twins(*space.views, artificial_rows=rows, generator=space.context.generator() if rows else None)


def arc(space: SpaceViews) -> Float[Tensor, ""]:
    """ArcCSE: InfoNCE with the positive's angle enlarged by the knob "arc_margin", in degrees."""
    return arc_con(*space.views, margin=space.knob["arc_margin"], temperature=space.settings.temperature, ids=space.ids)


def rank(space: SpaceViews) -> Float[Tensor, ""]:
    """RankCSE: both views agree on a sentence's neighbours."""
    return rank_consistency(*space.views, temperature=space.settings.temperature)


def whitened(space: SpaceViews) -> Float[Tensor, ""]:
    """WhitenedCSE: InfoNCE of each view after group whitening, its features shuffled anew; a mean over the knob "whitenings"."""
    generator, (a, b) = space.context.generator(), space.views
    times, groups = int(space.knob["whitenings"]), max(1, int(a.shape[1] // space.knob["whitening_size"]))
    total = 0.0
    for _ in range(times):
        orders = (torch.randperm(a.shape[1], generator=generator).to(a.device) for _ in range(2))
        white = (group_whiten(view, order, groups=groups) for view, order in zip((a, b), orders, strict=True))
        total = total + info_nce(*white, temperature=space.settings.temperature, ids=space.ids) / times
    return total


def self_contrast(space: SpaceViews) -> Float[Tensor, ""]:
    """SCD: the mean cosine of a sentence's two views, which is to be small; another term keeps them from falling apart."""
    return torch.cosine_similarity(*space.views, dim=-1).mean()


SHARED: dict[str, Callable[[SpaceViews], Float[Tensor, ""]]] = {
    "nce": nce,
    "off_info": off_info,
    "dcl": dcl,
    "barlow": barlow,
    "arc": arc,
    "rank": rank,
    "whitened": whitened,
    "self_contrast": self_contrast,
}
NEED_CLEAN = frozenset({"off_info"})
WEIGHTS = {"dcl": 0.1}  # ImSimCSE's lambda; of all other terms 1
KNOBS = ("arc_margin:10", "whitenings:3", "whitening_size:32")
"""Knobs of shared terms. arc_margin: ArcCSE's 10 degrees. whitenings, whitening_size: ours; a group has fewer features
than a batch has sentences."""


def knobs_of(given: Sequence[str], usual: Sequence[str]) -> Mapping[str, float]:
    """Numbers by name, of entries "name:0.5": the usual ones, and what is given instead.

    Raises SettingsError for a knob that is not among the usual ones (with the nearest) and a value that is no number.
    """
    names = [entry.partition(":")[0] for entry in usual]
    knobs: dict[str, float] = {}
    for entry in (*usual, *given):
        name, _, number = entry.partition(":")
        if name not in names:
            raise SettingsError(f"unknown knob {name!r}; {suggest(name, names)}")
        try:
            knobs[name] = float(number)
            if not math.isfinite(knobs[name]):
                raise ValueError(number)
        except ValueError:
            raise SettingsError(f"the value {number!r} of the knob {name!r} is no number, as in {name}:0.5") from None
    return knobs


def weights_of(given: Sequence[str], offered: Sequence[str]) -> Mapping[str, float]:
    """Weights by term, in order: of "name" its usual one, of "name:0.05" 0.05.

    Raises SettingsError for a term that is not offered (with the nearest), one that is named twice, and a bad weight.
    """
    weights: dict[str, float] = {}
    for entry in given:
        name, colon, number = entry.partition(":")
        if name not in offered:
            raise SettingsError(f"unknown term {name!r}; {suggest(name, offered)}")
        if name in weights:
            raise SettingsError(f"the term {name!r} is named twice in {','.join(given)}; give it once, with a weight")
        try:
            weights[name] = float(number) if colon else WEIGHTS.get(name, 1.0)
        except ValueError:
            raise SettingsError(f"the weight {number!r} of the term {name!r} is no number, as in {name}:0.5") from None
        if not 0 < weights[name] < float("inf"):
            raise SettingsError(f"the weight of the term {name!r} must be above 0, got {number}; leave it out instead")
    return weights
