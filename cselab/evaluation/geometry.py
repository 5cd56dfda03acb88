"""Geometry of embeddings: alignment, uniformity, anisotropy and effective rank."""

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

from cselab.errors import DataError


def alignment(x: Float[Tensor, "n d"], y: Float[Tensor, "n d"]) -> Float[Tensor, ""]:
    """Alignment `E ||f(x) - f(y)||^2` over pairs of the same meaning: 0 equal, 4 opposite.

    Wang and Isola 2020, Eq. 1 with alpha 2, https://arxiv.org/abs/2005.10242. Normalises rows.
    SimCSE's convention: the pairs of STS-B dev rated above 4.

    Args:
        x: Vectors of n sentences, (n, d).
        y: Vectors of their partners, (n, d).

    Returns:
        A scalar, 0 to 4.

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
            "alignment is a mean over pairs of the same meaning, got none; lower the rating that "
            "selects them"
        )
    return (F.normalize(x.float(), dim=1) - F.normalize(y.float(), dim=1)).square().sum(1).mean()


def uniformity(x: Float[Tensor, "n d"], t: float = 2.0) -> Float[Tensor, ""]:
    """Uniformity `log E exp(-t ||f(x) - f(y)||^2)` over all pairs of rows.

    0: collapsed to a point; lower: better spread. Wang and Isola 2020, Eq. 2,
    https://arxiv.org/abs/2005.10242. Normalises rows. SimCSE's convention: all sentences of STS-B
    dev. Memory is proportional to n^2 / 2.

    Args:
        x: Vectors of n sentences, (n, d).
        t: Factor of the squared distance.

    Returns:
        A scalar, 0 or below.

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


def anisotropy(x: Float[Tensor, "n d"]) -> Float[Tensor, ""]:
    """Anisotropy: mean cosine of two different rows; 0 for spread directions, 1 for equal ones.

    Ethayarajh 2019, https://arxiv.org/abs/1909.00512.

    Args:
        x: Vectors of n sentences, (n, d).

    Returns:
        A scalar.

    Raises:
        DataError: For fewer than two rows.

    Examples:
        >>> import torch
        >>> from cselab.evaluation import anisotropy
        >>> f"{anisotropy(torch.eye(3)).item():.1f}, {anisotropy(torch.eye(3) + 1).item():.2f}"
        '0.0, 0.83'
    """
    if len(x) < 2:
        raise DataError(f"anisotropy compares pairs of sentences, got {len(x)}; give at least 2")
    unit = F.normalize(x.double(), dim=1)
    n = len(unit)
    return ((unit.sum(0).square().sum() - unit.square().sum()) / (n * (n - 1))).to(x.dtype)


def effective_rank(x: Float[Tensor, "n d"]) -> Float[Tensor, ""]:
    """Effective rank: exp of the entropy of the singular values' shares, from 1 to min(n, d).

    Roy and Vetterli 2007, https://ieeexplore.ieee.org/document/7098875. Centres columns; does not
    normalise rows.

    Args:
        x: Vectors of n sentences, (n, d).

    Returns:
        A scalar.

    Raises:
        DataError: For rows that are all the same.

    Examples:
        >>> import torch
        >>> from cselab.evaluation import effective_rank
        >>> line = torch.tensor([[1.0, 2.0], [2.0, 4.0], [3.0, 6.0]])
        >>> f"{effective_rank(line).item():.2f}, {effective_rank(torch.eye(3)).item():.2f}"
        '1.00, 2.00'
    """
    singular = torch.linalg.svdvals(x.double() - x.double().mean(0))
    if singular.sum() <= 1e-12 * max(1.0, x.abs().max().item()):
        raise DataError("the rows are all the same; a rank needs vectors that differ")
    share = singular / singular.sum()
    return torch.special.entr(share).sum().exp().to(x.dtype)
