"""Losses between dimensions instead of sentences: SimCSE++'s DCL, and Barlow Twins."""

from typing import Literal

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

from cselab.losses.inputs import (
    at_least_float32,
    check_choice,
    check_negatives,
    check_shapes,
    check_temperature,
)

BATCH_NORM_EPS = 1e-5
TINY = 1e-12


def dimension_contrast(
    a: Float[Tensor, "N d"],
    b: Float[Tensor, "N d"],
    *,
    temperature: float = 5.0,
    variant: Literal["paper", "released"] = "released",
) -> Float[Tensor, ""]:
    """Dimension-wise contrastive loss (DCL): each dimension finds itself in the other view.

    SimCSE++ Eq. 5, https://arxiv.org/abs/2305.13192. Features are standardised over the batch; the
    logit of dimensions c and d is `sum_i a_ic b_id / temperature`.

    Args:
        variant: "released": batch-norm variance (biased), logits divided by N as well, a mean over
            c; the published weight 0.1 and temperature 5 belong to this form. "paper": unbiased
            standard deviation, a sum over c; its gradient is thousands of times larger at the same
            weight.

    Raises:
        DataError: For wrong shapes, or N < 2 (one sentence has no variance).
        SettingsError: For an unknown variant, or a temperature that is not above 0.

    Examples:
        >>> import torch
        >>> from cselab.losses import dimension_contrast
        >>> views = torch.tensor([[1.0, 1.0], [-1.0, 1.0], [1.0, -1.0], [-1.0, -1.0]])
        >>> f"{dimension_contrast(views, views, temperature=1.0).item():.4f}"  # log(1 + 1/e)
        '0.3133'
    """
    check_choice("variant", variant, ("paper", "released"))
    check_temperature(temperature, published=5.0)
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
    """Barlow Twins: `sum_c (1 - C_cc)^2 + w sum_{c != d} C_cd^2`, C the views' cross-correlation.

    Zbontar et al. 2021, https://arxiv.org/abs/2103.03230; SimCSE++ Eq. 4
    (https://arxiv.org/abs/2305.13192) prints a leading minus, a misprint.

    Args:
        off_diagonal_weight: w.
        artificial_rows: Fresh Gaussian rows, the same in both views, that raise the rank of C
            (SimCSE++ Table 2). Without them it is at most N - 1 (N without centring), far below d
            for a batch of sentences.
        centre: Whether to subtract each dimension's mean over the batch.
        generator: What the artificial rows are drawn from; None: torch's default.

    Raises:
        DataError: For wrong shapes, or N < 2.

    Examples:
        >>> import torch
        >>> from cselab.losses import barlow_twins
        >>> views = torch.tensor([[1.0, 1.0], [-1.0, 1.0], [1.0, -1.0], [-1.0, -1.0]])
        >>> barlow_twins(views, -views).item()  # C is minus the identity: (1 - (-1))^2 twice
        8.0
    """
    c = cross_correlation(a, b, artificial_rows=artificial_rows, centre=centre, generator=generator)
    diagonal = c.diagonal()
    return (1 - diagonal).square().sum() + off_diagonal_weight * (
        c.square().sum() - diagonal.square().sum()
    )


def cross_correlation(
    a: Float[Tensor, "N d"],
    b: Float[Tensor, "N d"],
    *,
    artificial_rows: int = 0,
    centre: bool = True,
    generator: torch.Generator | None = None,
) -> Float[Tensor, "d d"]:
    """Cross-correlation matrix of `barlow_twins`: dimensions of `a` (rows) against those of `b`.

    https://arxiv.org/abs/2103.03230, Eq. 2; options as in `barlow_twins`. Entries are in -1..1.

    Raises:
        DataError: For wrong shapes, or N < 2.

    Examples:
        >>> import torch
        >>> from cselab.losses import cross_correlation
        >>> views = torch.tensor([[1.0, 1.0], [-1.0, 1.0], [1.0, -1.0], [-1.0, -1.0]])
        >>> cross_correlation(views, views)
        tensor([[1., 0.],
                [0., 1.]])
    """
    check_shapes("N d", a=a, b=b)
    check_negatives(len(a))
    a, b = at_least_float32(a), at_least_float32(b)
    if artificial_rows:
        rows = torch.randn(artificial_rows, a.shape[1], generator=generator, dtype=a.dtype).to(
            a.device
        )
        a, b = torch.cat([a, rows]), torch.cat([b, rows])
    if centre:
        a, b = _centred(a), _centred(b)
    return F.normalize(a, dim=0, eps=TINY).T @ F.normalize(b, dim=0, eps=TINY)


def _centred(x: Float[Tensor, "N d"]) -> Float[Tensor, "N d"]:
    return x - x.mean(0)
