"""Shuffled group whitening (WhitenedCSE): features decorrelated over the batch, a few at a time."""

import torch
from jaxtyping import Float, Int
from torch import Tensor

from cselab.errors import DataError, SettingsError
from cselab.losses._inputs import at_least_float32


def group_whiten(
    rows: Float[Tensor, "N d"], order: Int[Tensor, " d"], *, groups: int, shrinkage: float = 1e-5
) -> Float[Tensor, "N d"]:
    """ZCA over the batch of each of `groups` groups of features, the features taken in `order` and put back after (WhitenedCSE):
    a group's covariance is the identity, up to `shrinkage` on its diagonal.

    A group's features are fewer than the sentences, else their covariance has no full rank.

    Raises SettingsError for groups that do not divide d, DataError where a group has N features or more.
    """
    n, d = rows.shape
    if d % groups:
        raise SettingsError(
            f"{groups} groups do not divide {d} features; give one of {[g for g in range(1, d + 1) if d % g == 0]}"
        )
    if d // groups >= n:
        raise DataError(
            f"a group of {d // groups} features cannot be whitened over {n} sentences; give more groups or a larger batch"
        )
    parts = at_least_float32(rows)[:, order].view(n, groups, -1).transpose(0, 1)
    centred = parts - parts.mean(1, keepdim=True)
    covariance = centred.mT @ centred / (n - 1) + shrinkage * torch.eye(d // groups, device=rows.device)
    values, vectors = torch.linalg.eigh(covariance)
    white = centred @ (vectors * values.rsqrt()[:, None, :] @ vectors.mT)
    return white.transpose(0, 1).reshape(n, d)[:, order.argsort()]
