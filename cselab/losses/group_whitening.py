"""Shuffled group whitening (WhitenedCSE): decorrelate features over the batch, group by group."""

import torch
from jaxtyping import Float, Int
from torch import Tensor

from cselab.errors import DataError, SettingsError
from cselab.losses.inputs import at_least_float32


def group_whiten(
    rows: Float[Tensor, "N d"], order: Int[Tensor, " d"], *, groups: int, shrinkage: float = 1e-5
) -> Float[Tensor, "N d"]:
    """Whiten (ZCA) groups of features over the batch: each group's covariance becomes the identity.

    WhitenedCSE, https://arxiv.org/abs/2305.17746.

    Args:
        order: A permutation of the d features, (d,); groups are taken in this order, and the result
            has the features in their first order again.
        groups: Number of groups, of d / groups features each. A group needs fewer features than
            there are sentences, or its covariance is singular.
        shrinkage: What is added to the diagonal of each covariance.

    Raises:
        SettingsError: For groups that do not divide d, or fewer than one.
        DataError: Where a group has N features or more.

    Examples:
        >>> import torch
        >>> from cselab.losses import group_whiten
        >>> rows = torch.tensor([[2.0, 1.0], [-2.0, 1.0], [2.0, -1.0], [-2.0, -1.0]])
        >>> white = group_whiten(rows, torch.tensor([1, 0]), groups=1)
        >>> torch.allclose(torch.cov(white.T), torch.eye(2), atol=1e-4)
        True
    """
    n, d = rows.shape
    if groups < 1 or d % groups:
        raise SettingsError(
            f"{groups} groups do not divide {d} features; give one of "
            f"{[g for g in range(1, d + 1) if d % g == 0]}"
        )
    if d // groups >= n:
        raise DataError(
            f"a group of {d // groups} features cannot be whitened over {n} sentences; give more "
            "groups or a larger batch"
        )
    parts = at_least_float32(rows)[:, order].view(n, groups, -1).transpose(0, 1)
    centred = parts - parts.mean(1, keepdim=True)
    covariance = centred.mT @ centred / (n - 1) + shrinkage * torch.eye(
        d // groups, device=rows.device
    )
    values, vectors = torch.linalg.eigh(covariance)
    white = centred @ (vectors * values.rsqrt()[:, None, :] @ vectors.mT)
    return white.transpose(0, 1).reshape(n, d)[:, order.argsort()]
