"""Alignment and uniformity (Wang and Isola 2020), on the unit sphere."""

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

from cselab.errors import DataError


def alignment(x: Float[Tensor, "n d"], y: Float[Tensor, "n d"]) -> Float[Tensor, ""]:
    """`E ||f(x) - f(y)||^2` over pairs that mean the same; lower is closer. Rows are normalised here.

    The field's convention (SimCSE): the pairs of STS-B dev rated above 4.
    """
    return (F.normalize(x.float(), dim=1) - F.normalize(y.float(), dim=1)).square().sum(1).mean()


def uniformity(x: Float[Tensor, "n d"], t: float = 2.0) -> Float[Tensor, ""]:
    """`log E exp(-t ||f(x) - f(y)||^2)` over all pairs i < j; lower is more spread out, 0 is collapsed.

    Rows are normalised here. The field's convention (SimCSE): all sentences of STS-B dev. Raises DataError for n < 2.
    """
    if len(x) < 2:
        raise DataError(f"uniformity compares pairs of sentences, got {len(x)}")
    unit = F.normalize(x.float(), dim=1)
    return (-t * torch.pdist(unit).square()).exp().mean().log()
