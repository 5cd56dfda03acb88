"""Geometry of embeddings: alignment and uniformity."""

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

from cselab.errors import DataError


def alignment(x: Float[Tensor, "n d"], y: Float[Tensor, "n d"]) -> Float[Tensor, ""]:
    """Alignment `E ||f(x) - f(y)||^2` over pairs of the same meaning: 0 equal, 4 opposite.

    Wang and Isola 2020, Eq. 1 with alpha 2, https://arxiv.org/abs/2005.10242. Normalises rows.
    SimCSE's convention: the pairs of STS-B dev rated above 4.

    Raises:
        DataError: Without a pair.

    Examples:
        >>> import torch
        >>> from cselab.evaluation import alignment
        >>> x = torch.tensor([[1.0, 0.0], [0.0, 1.0]])
        >>> alignment(x, 3 * x).item(), alignment(x, -x).item()
        (0.0, 4.0)
    """
    if not len(x):
        raise DataError(
            "alignment is a mean over pairs, got none; lower the rating that selects them"
        )
    return (F.normalize(x.float(), dim=1) - F.normalize(y.float(), dim=1)).square().sum(1).mean()


def uniformity(x: Float[Tensor, "n d"], t: float = 2.0) -> Float[Tensor, ""]:
    """Uniformity `log E exp(-t ||f(x) - f(y)||^2)` over all pairs of rows.

    0: collapsed to a point; lower: better spread. Wang and Isola 2020, Eq. 2,
    https://arxiv.org/abs/2005.10242. Normalises rows. SimCSE's convention: all sentences of STS-B
    dev. Memory is proportional to n^2 / 2.

    Raises:
        DataError: For fewer than two rows.

    Examples:
        >>> import torch
        >>> from cselab.evaluation import uniformity
        >>> f"{uniformity(torch.ones(4, 3)).item():.1f}, {uniformity(torch.eye(3)).item():.1f}"
        '0.0, -4.0'
    """
    if len(x) < 2:
        raise DataError(f"uniformity compares pairs of sentences, got {len(x)}; give at least 2")
    return torch.pdist(F.normalize(x.float(), dim=1)).square().mul(-t).exp().mean().log()
