"""Rank of the cross-correlation matrix, which limits losses that decorrelate dimensions.

SimCSE++ (ImSimCSE) section 4.2, https://arxiv.org/abs/2305.13192.
"""

import torch
from jaxtyping import Float
from torch import Tensor

from cselab.losses import cross_correlation


def correlation_rank(
    a: Float[Tensor, "N d"],
    b: Float[Tensor, "N d"],
    *,
    artificial_rows: int = 0,
    centre: bool = True,
    seed: int = 0,
) -> int:
    """Rank of the cross-correlation matrix (d, d) of two views.

    Barlow Twins pulls this matrix towards the identity. The rank is at most N - 1 with centred
    features and N without; below d, the identity cannot be reached (ImSimCSE section 4.2,
    https://arxiv.org/abs/2305.13192).

    Args:
        artificial_rows: Number of Gaussian rows, the same in both views; they raise the rank by
            their number (Table 2).
        seed: Seed of the artificial rows.

    Raises:
        DataError: As `cselab.losses.cross_correlation`.

    Examples:
        >>> import torch
        >>> from cselab.workbook.analysis import correlation_rank
        >>> views = torch.randn(2, 5, 8, generator=torch.Generator().manual_seed(0))
        >>> correlation_rank(*views), correlation_rank(*views, artificial_rows=3)
        (4, 7)
    """
    random = torch.Generator().manual_seed(seed)
    matrix = cross_correlation(
        a.double(), b.double(), artificial_rows=artificial_rows, centre=centre, generator=random
    )
    return int(torch.linalg.matrix_rank(matrix, rtol=1e-9))
