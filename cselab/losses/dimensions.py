"""Losses between dimensions instead of sentences: SimCSE++'s dimension-wise contrast, and Barlow Twins beside it."""

from typing import Literal

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

from cselab.losses._inputs import at_least_float32, check_choice, check_negatives, check_shapes

BATCH_NORM_EPS = 1e-5
TINY = 1e-12


def dimension_contrast(
    a: Float[Tensor, "N d"],
    b: Float[Tensor, "N d"],
    *,
    temperature: float = 5.0,
    variant: Literal["paper", "released"] = "released",
) -> Float[Tensor, ""]:
    """Each dimension finds itself among all dimensions of the other view (SimCSE++ Eq. 5, DCL).

    Features are standardised over the batch; the logit of dimensions c and d is `sum_i a_ic b_id / temperature`.
    variant: "released": variance as in a batch norm without parameters, logits divided by N as well, a mean over c; what
        the published weight 0.1 and temperature 5 belong to. "paper": unbiased standard deviation, a sum over c; its
        gradient is thousands of times larger at the same weight.

    Raises DataError for wrong shapes or N < 2 (one sentence has no spread), SettingsError for an unknown variant.
    """
    check_choice("variant", variant, ("paper", "released"))
    check_shapes("N d", a=a, b=b)
    check_negatives(len(a))
    a, b = at_least_float32(a), at_least_float32(b)
    n, d = a.shape
    target = torch.arange(d, device=a.device)
    if variant == "released":
        a, b = (_centred(x) / (x.var(0, correction=0) + BATCH_NORM_EPS).sqrt() for x in (a, b))
        return F.cross_entropy(a.T @ b / (n * temperature), target)
    a, b = (_centred(x) / x.std(0).clamp_min(TINY) for x in (a, b))
    return F.cross_entropy(a.T @ b / temperature, target, reduction="sum")


def barlow_twins(
    a: Float[Tensor, "N d"],
    b: Float[Tensor, "N d"],
    *,
    off_diagonal_weight: float = 0.012,
    artificial_rows: int = 0,
    centre: bool = True,
    generator: torch.Generator | None = None,
) -> Float[Tensor, ""]:
    """`sum_c (1 - C_cc)^2 + w sum_{c != d} C_cd^2` of the cross-correlation C of two views (Zbontar et al. 2021).

    SimCSE++ Eq. 4 prints a leading minus, a misprint. The rank of C is at most N - 1 (N without centring), far below d for
    a batch of sentences; `artificial_rows` fresh Gaussian rows, the same in both views, raise it (their Table 2).

    Raises DataError for wrong shapes or N < 2.
    """
    c = cross_correlation(a, b, artificial_rows=artificial_rows, centre=centre, generator=generator)
    diagonal = c.diagonal()
    return (1 - diagonal).square().sum() + off_diagonal_weight * (c.square().sum() - diagonal.square().sum())


def cross_correlation(
    a: Float[Tensor, "N d"],
    b: Float[Tensor, "N d"],
    *,
    artificial_rows: int = 0,
    centre: bool = True,
    generator: torch.Generator | None = None,
) -> Float[Tensor, "d d"]:
    """The matrix of `barlow_twins`: entries in -1..1, between dimensions of one view (rows) and of the other."""
    check_shapes("N d", a=a, b=b)
    check_negatives(len(a))
    a, b = at_least_float32(a), at_least_float32(b)
    if artificial_rows:
        rows = torch.randn(artificial_rows, a.shape[1], generator=generator, dtype=a.dtype).to(a.device)
        a, b = torch.cat([a, rows]), torch.cat([b, rows])
    if centre:
        a, b = _centred(a), _centred(b)
    return F.normalize(a, dim=0, eps=TINY).T @ F.normalize(b, dim=0, eps=TINY)


def _centred(x: Float[Tensor, "N d"]) -> Float[Tensor, "N d"]:
    return x - x.mean(0)
