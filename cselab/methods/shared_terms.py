"""The shared terms, which any method with two views can add by name: losses of a `Space`."""

from typing import ClassVar, Literal

import torch
from jaxtyping import Float
from pydantic import Field
from torch import Tensor

from cselab.errors import SettingsError
from cselab.losses import (
    arc_con,
    barlow_twins,
    dimension_contrast,
    group_whiten,
    info_nce,
    off_dropout_info_nce,
    rank_consistency,
)
from cselab.methods.terms import Space, TermConfig, shared_term


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
    """The form of weight 0.1 and temperature 5; ImSimCSE's text and its code differ."""


class Barlow(TermConfig):
    """Barlow Twins."""

    artificial_rows: int = Field(0, ge=0)
    """Gaussian rows in the correlation (ImSimCSE Table 2: 0 to 704)."""


class Arc(TermConfig):
    """ArcCSE's InfoNCE with a margin on the positive's angle."""

    margin: float = Field(10.0, ge=0, le=90)
    """Degrees; ArcCSE: 10."""


class GroupWhitening(TermConfig):
    """WhitenedCSE's InfoNCE of group-whitened views."""

    repeats: int = Field(3, ge=1)
    """Shuffles a step; ours."""
    group_size: int = Field(32, ge=1)
    """Features a group, at most all; ours: fewer than a batch has sentences."""


@shared_term("nce", InfoNCE, script="nce")
def nce(space: Space, config: InfoNCE) -> Float[Tensor, ""]:
    """InfoNCE turns the two views of a sentence towards each other, and away from other sentences;
    the nearest negatives most.

    `−1/N Σᵢ log( exp(cos(aᵢ, bᵢ)/τ) / Σⱼ exp(cos(aᵢ, bⱼ)/τ) )` (SimCSE Eq. 4,
    https://arxiv.org/abs/2104.08821)
    """
    return info_nce(*space.views, layout=config.layout, **space.options)


@shared_term("off_info", OffDropout, script="off_info")
def off_info(space: Space, config: OffDropout) -> Float[Tensor, ""]:
    """InfoNCE whose negatives are vectors without dropout (points: the mean of the two views).

    `−1/N Σᵢ log( exp(pᵢ) / (exp(pᵢ) + m Σⱼ≠ᵢ exp(cos(cᵢ, cⱼ)/τ)) ), pᵢ = cos(aᵢ, bᵢ)/τ` (SimCSE++
    Eq. 3, https://arxiv.org/abs/2305.13192)
    """
    m, scale = config.negative_weight, config.positive_scale
    vectors = (*space.views, space.clean)
    return off_dropout_info_nce(*vectors, negative_weight=m, positive_scale=scale, **space.options)


@shared_term("dcl", DCL, script="dcl")
def dcl(space: Space, config: DCL) -> Float[Tensor, ""]:
    """Each dimension finds itself in the other view, so that dimensions differ from each other.

    `−Σ_c log( exp(⟨ã_c, b̃_c⟩/τ′) / Σ_d exp(⟨ã_c, b̃_d⟩/τ′) )`, ã, b̃ standardised dimensions
    (SimCSE++ Eq. 5, https://arxiv.org/abs/2305.13192)
    """
    return dimension_contrast(*space.views, temperature=config.temperature, variant=config.variant)


@shared_term("barlow", Barlow, script="barlow")
def barlow(space: Space, config: Barlow) -> Float[Tensor, ""]:
    """Equal dimensions of the two views correlate, different ones do not.

    `Σ_c (1 − C_cc)² + 0.012 Σ_{c≠d} C_cd²`, C the views' cross-correlation (Barlow Twins,
    https://arxiv.org/abs/2103.03230)

    The Gaussian rows are the same on every process.
    """
    rows = config.artificial_rows
    generator = space.step.generator() if rows else None
    return barlow_twins(*space.views, artificial_rows=rows, generator=generator)


@shared_term("arc", Arc, script="arc")
def arc(space: Space, config: Arc) -> Float[Tensor, ""]:
    """InfoNCE that asks positives to be nearer than negatives by an angle m.

    `InfoNCE with cos(θᵢᵢ + m) in the place of cos(aᵢ, bᵢ)` (ArcCSE, ArcCon,
    https://aclanthology.org/2022.acl-long.336)
    """
    return arc_con(*space.views, margin=config.margin, **space.options)


@shared_term("rank", script="rank")
def rank(space: Space, config: TermConfig) -> Float[Tensor, ""]:
    """Both views rank the other sentences alike.

    `1/N Σᵢ JS( softmaxⱼ≠ᵢ(cos(aᵢ, bⱼ)/τ) ‖ softmaxⱼ≠ᵢ(cos(bᵢ, aⱼ)/τ) )` (RankCSE,
    https://arxiv.org/abs/2305.16726)
    """
    return rank_consistency(*space.views, temperature=space.temperature)


@shared_term("whitened", GroupWhitening)
def group_whitened(space: Space, config: GroupWhitening) -> Float[Tensor, ""]:
    """InfoNCE after the features have been decorrelated over the batch.

    `InfoNCE of W·a and W·b, W the whitening of a shuffled group of features` (WhitenedCSE,
    https://arxiv.org/abs/2305.17746)

    Features are shuffled anew each time; a mean over `repeats`.
    """
    generator, (a, b) = space.step.generator(), space.views
    d = a.shape[1]
    size = min(config.group_size, d)
    if d % size:
        valid = ", ".join(str(n) for n in range(1, d + 1) if d % n == 0)
        raise SettingsError(
            f"terms.whitened.group_size={size} does not divide the {d} features; use one of {valid}"
        )

    def white(view: Tensor) -> Tensor:
        order = torch.randperm(d, generator=generator).to(view.device)
        return group_whiten(view, order, groups=d // size)

    total = 0.0
    for _ in range(config.repeats):
        total = total + info_nce(white(a), white(b), **space.options) / config.repeats
    return total


@shared_term("self_contrast", script="self_contrast")
def self_contrast(space: Space, config: TermConfig) -> Float[Tensor, ""]:
    """Turns the two views of a sentence apart; another term has to hold them together.

    `1/N Σᵢ cos(aᵢ, bᵢ)` (SCD, https://arxiv.org/abs/2203.07847)
    """
    return torch.cosine_similarity(*space.views, dim=-1).mean()
