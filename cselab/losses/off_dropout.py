"""InfoNCE whose negatives come from a pass without dropout (SimCSE++, called ImSimCSE here)."""

import math

import torch
from jaxtyping import Float, Int
from torch import Tensor

from cselab.errors import SettingsError
from cselab.losses.info_nce import cosines, without_duplicates
from cselab.losses.inputs import check_negatives, check_shapes, check_temperature


def off_dropout_info_nce(
    a: Float[Tensor, "N d"],
    b: Float[Tensor, "N d"],
    clean: Float[Tensor, "N d"],
    *,
    temperature: float = 0.05,
    negative_weight: float = 0.9,
    positive_scale: float = 1.0,
    ids: Int[Tensor, " N"] | None = None,
) -> Float[Tensor, ""]:
    """Off-dropout InfoNCE: positives between two dropout views, negatives without dropout.

    SimCSE++ Eq. 3, https://arxiv.org/abs/2305.13192:
    `-log( e^p / (e^p + m sum_{j != i} e^(s(clean_i, clean_j))) )`, a mean over rows, with
    s = cosine / temperature.

    Args:
        b: The other dropout view; the positive is `p = positive_scale * s(a_i, b_i)`.
        clean: The same sentences without dropout; the gradient flows through it.
        negative_weight: The paper's m; adds log m to the logit of every negative.
        positive_scale: The released code's `pos_ratio` (0.9 in one script, 1 in the combined one);
            scales the logit of the positive.
        ids: As in `info_nce`.

    Raises:
        DataError: For wrong shapes, or N < 2.
        SettingsError: For a temperature or `negative_weight` not above 0.

    Examples:
        >>> import torch
        >>> from cselab.losses import off_dropout_info_nce
        >>> x = torch.eye(4)
        >>> loss = off_dropout_info_nce(x, x, x, temperature=1.0, negative_weight=1.0)
        >>> f"{loss.item():.4f}"  # equal views: info_nce(x, x)
        '0.7437'
    """
    check_shapes("N d", a=a, b=b, clean=clean)
    return split_info_nce(
        (a, b),
        (clean, clean),
        temperature=temperature,
        negative_weight=negative_weight,
        positive_scale=positive_scale,
        ids=ids,
    )


def split_info_nce(
    positive: tuple[Float[Tensor, "N d"], Float[Tensor, "N d"]],
    negative: tuple[Float[Tensor, "N d"], Float[Tensor, "N d"]],
    *,
    temperature: float = 0.05,
    negative_weight: float = 1.0,
    positive_scale: float = 1.0,
    ids: Int[Tensor, " N"] | None = None,
) -> Float[Tensor, ""]:
    """InfoNCE with one pair of views for the positives and another for the negatives.

    SimCSE++ section 3.1, https://arxiv.org/abs/2305.13192, where the pairs differ in their noise.
    With two equal pairs it is `info_nce`, layout "cross". Options as in `off_dropout_info_nce`.

    Args:
        positive: Two views; row i of the first and row i of the second are a positive.
        negative: Two views; row i of the first and row j != i of the second are a negative.
        ids: As in `info_nce`.

    Raises:
        DataError: For wrong shapes, or N < 2.
        SettingsError: For a temperature or `negative_weight` not above 0.

    Examples:
        >>> import torch
        >>> from cselab.losses import split_info_nce
        >>> x = torch.eye(4)
        >>> f"{split_info_nce((x, x), (x, x), temperature=1.0).item():.4f}"  # info_nce(x, x)
        '0.7437'
        >>> loss = split_info_nce((x, x.roll(1, 0)), (x, x), temperature=1.0)
        >>> f"{loss.item():.4f}"  # positives as far away as negatives: log 4
        '1.3863'
    """
    check_temperature(temperature)
    if not negative_weight > 0:
        raise SettingsError(
            f"negative_weight must be above 0, got {negative_weight}; the paper uses 0.9"
        )
    check_shapes("N d", a=positive[0], b=positive[1], c=negative[0], d=negative[1])
    check_negatives(len(positive[0]))
    positives = positive_scale * cosines(*positive).diagonal() / temperature
    negatives = cosines(*negative) / temperature + math.log(negative_weight)
    itself = torch.arange(len(negatives), device=negatives.device)
    negatives = without_duplicates(negatives, ids, itself)
    negatives = negatives.masked_fill(itself[:, None] == itself, -torch.inf)
    logits = torch.cat([positives[:, None], negatives], dim=1)
    return (logits.logsumexp(dim=1) - positives).mean()
