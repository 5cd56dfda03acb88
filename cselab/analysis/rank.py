"""The rank bottleneck of decorrelation: how many dimensions can a batch of N sentences tell apart? (ImSimCSE section 4.2)"""

import torch
from jaxtyping import Float
from torch import Tensor

from cselab.losses import cross_correlation


def correlation_rank(
    a: Float[Tensor, "N d"], b: Float[Tensor, "N d"], *, artificial_rows: int = 0, centre: bool = True, seed: int = 0
) -> int:
    """Rank of the cross-correlation matrix (d, d) that Barlow Twins pulls towards the identity, of two views of a batch.

    At most N - 1 with centred features, N without: below d the identity is out of reach. `artificial_rows` Gaussian rows,
    the same in both views, lift it by as many (Table 2). Errors as `cselab.losses.cross_correlation`.
    """
    random = torch.Generator().manual_seed(seed)
    matrix = cross_correlation(a.double(), b.double(), artificial_rows=artificial_rows, centre=centre, generator=random)
    return int(torch.linalg.matrix_rank(matrix, rtol=1e-9))
