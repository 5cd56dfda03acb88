"""Rank of the cross-correlation matrix, which limits losses that decorrelate dimensions.

SimCSE++ (ImSimCSE) section 4.2, https://arxiv.org/abs/2305.13192.
"""

import torch
from jaxtyping import Float
from torch import Tensor

from cselab.losses import cross_correlation


def correlation_rank(
    a: Float[Tensor, "N d"], b: Float[Tensor, "N d"], *, artificial_rows: int = 0
) -> int:
    """Rank of the cross-correlation matrix (d, d) of two views.

    Barlow Twins pulls this matrix towards the identity. With centred features, as here, the rank is
    at most N - 1; below d, the identity cannot be reached (ImSimCSE section 4.2,
    https://arxiv.org/abs/2305.13192).

    Args:
        artificial_rows: Number of Gaussian rows, the same in both views; they raise the rank by
            their number (Table 2).

    Raises:
        DataError: As `cselab.losses.cross_correlation`.

    Examples:
        >>> import torch
        >>> from cselab.workbook.analysis import correlation_rank
        >>> views = torch.randn(2, 5, 8, generator=torch.Generator().manual_seed(0))
        >>> correlation_rank(*views), correlation_rank(*views, artificial_rows=3)
        (4, 7)
    """
    draw, a, b = torch.Generator().manual_seed(0), a.double(), b.double()
    matrix = cross_correlation(a, b, artificial_rows=artificial_rows, generator=draw)
    return int(torch.linalg.matrix_rank(matrix, rtol=1e-9))
