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


def anisotropy(x: Float[Tensor, "n d"]) -> Float[Tensor, ""]:
    """Mean cosine of two different rows: 0 for directions spread over the sphere, 1 for a single one (Ethayarajh 2019).

    Raises DataError for fewer than two rows.
    """
    if len(x) < 2:
        raise DataError(f"anisotropy compares pairs of sentences, got {len(x)}; give at least 2")
    unit = F.normalize(x.double(), dim=1)
    n = len(unit)
    return ((unit.sum(0).square().sum() - unit.square().sum()) / (n * (n - 1))).to(x.dtype)


def effective_rank(x: Float[Tensor, "n d"]) -> Float[Tensor, ""]:
    """How many directions the rows use: exp of the entropy of the singular values' shares (Roy and Vetterli 2007), from 1
    to min(n, d). Columns are centred here; rows are not normalised.

    Raises DataError for rows that are all the same.
    """
    singular = torch.linalg.svdvals(x.double() - x.double().mean(0))
    if singular.sum() <= 1e-12 * max(1.0, x.abs().max().item()):
        raise DataError("the rows are all the same; a rank needs vectors that differ")
    share = singular / singular.sum()
    return torch.special.entr(share).sum().exp().to(x.dtype)
