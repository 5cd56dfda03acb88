"""Alignment and uniformity of embeddings on the unit sphere (Wang and Isola 2020)."""

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

from cselab.errors import DataError


def alignment(x: Float[Tensor, "n d"], y: Float[Tensor, "n d"]) -> Float[Tensor, ""]:
    """`E ||f(x) - f(y)||^2` over pairs that mean the same (Eq. 1 with alpha 2): 0 is equal, 4 opposite.

    Rows are normalised here. SimCSE's convention: the pairs of STS-B dev rated above 4.

    Raises DataError without a pair.
    """
    if not len(x):
        raise DataError("alignment is a mean over pairs that mean the same, got none; lower the rating that picks them")
    return (F.normalize(x.float(), dim=1) - F.normalize(y.float(), dim=1)).square().sum(1).mean()


def uniformity(x: Float[Tensor, "n d"], t: float = 2.0) -> Float[Tensor, ""]:
    """`log E exp(-t ||f(x) - f(y)||^2)` over all pairs of different rows (Eq. 2): 0 is collapsed, lower is more spread.

    Rows are normalised here. SimCSE's convention: all sentences of STS-B dev. Memory grows with n^2 / 2.

    Raises DataError for fewer than two rows.
    """
    if len(x) < 2:
        raise DataError(f"uniformity compares pairs of sentences, got {len(x)}; give at least 2")
    return torch.pdist(F.normalize(x.float(), dim=1)).square().mul(-t).exp().mean().log()
