"""Agreement of two views on a sentence's neighbours in the batch (RankCSE)."""

import math

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

from cselab.losses.info_nce import cosines
from cselab.losses.inputs import check_negatives, check_shapes, check_temperature


def neighbour_lists(
    rows: Float[Tensor, "N d"], columns: Float[Tensor, "N d"]
) -> Float[Tensor, "N N-1"]:
    """Cosines of each row with the columns of the other sentences: RankCSE's S(x_i), j != i.

    https://arxiv.org/abs/2305.16726. `columns` are the same sentences, such as their other views.

    Raises:
        DataError: For wrong shapes, or N < 2.

    Examples:
        >>> import torch
        >>> from cselab.losses import neighbour_lists
        >>> neighbour_lists(torch.eye(3), torch.eye(3).roll(1, 0))
        tensor([[1., 0.],
                [0., 1.],
                [1., 0.]])
    """
    check_shapes("N d", rows=rows, columns=columns)
    check_negatives(len(rows))
    n = len(rows)
    others = ~torch.eye(n, dtype=torch.bool, device=rows.device)
    return cosines(rows, columns)[others].view(n, n - 1)


def rank_consistency(
    a: Float[Tensor, "N d"], b: Float[Tensor, "N d"], *, temperature: float = 0.05
) -> Float[Tensor, ""]:
    """Ranking consistency: Jensen-Shannon divergence of two views' softmax over the neighbours.

    RankCSE, https://arxiv.org/abs/2305.16726; a mean over sentences, from 0 (equal lists) to log 2.
    (A popular re-implementation clamps log-probabilities from below at a small *positive* number;
    its divergence is a constant.)

    Raises:
        DataError: For wrong shapes, or N < 2.
        SettingsError: For a temperature not above 0.

    Examples:
        >>> import torch
        >>> from cselab.losses import rank_consistency
        >>> x = torch.eye(4)
        >>> rank_consistency(x, x).item()  # both views rank the neighbours alike
        0.0
        >>> f"{rank_consistency(x, x.roll(1, 0)).item():.4f}"  # no neighbour in common: log 2
        '0.6931'
    """
    check_temperature(temperature)
    p = F.log_softmax(neighbour_lists(a, b) / temperature, dim=1)
    q = F.log_softmax(neighbour_lists(b, a) / temperature, dim=1)
    middle = torch.logaddexp(p, q) - math.log(2)
    halves = (F.kl_div(middle, x, reduction="batchmean", log_target=True) for x in (p, q))
    return sum(halves) / 2
