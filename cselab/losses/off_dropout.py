"""InfoNCE whose negatives come from a pass without dropout (SimCSE++ Eq. 3, here ImSimCSE)."""

import math

import torch
from jaxtyping import Float, Int
from torch import Tensor

from cselab.errors import SettingsError
from cselab.losses._inputs import check_negatives, check_shapes, check_temperature
from cselab.losses.info_nce import cosines, without_duplicates


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
    """`-log( e^(p) / (e^(p) + m sum_{j != i} e^(s(clean_i, clean_j))) )`, a mean over rows; s = cosine / temperature.

    a, b: the two dropout views, whose similarity `p = positive_scale * s(a_i, b_i)` is the positive. clean: the same
        sentences without dropout; the gradient flows through it.
    negative_weight: the paper's m, 0.9. positive_scale: the released code's `pos_ratio` (0.9 in one script, 1 in the
        combined one). They are two knobs: m adds log m to every negative, the other scales the positive's logit.
    ids: a number a sentence, equal for equal texts, which are then no negatives of each other. None: all are.

    Raises DataError for wrong shapes or N < 2, SettingsError for a temperature or weight that is not above 0.
    """
    check_shapes("N d", a=a, b=b, clean=clean)
    return split_info_nce(
        (a, b), (clean, clean), temperature=temperature, negative_weight=negative_weight, positive_scale=positive_scale,
        ids=ids,
    )  # fmt: skip


def split_info_nce(
    positive: tuple[Float[Tensor, "N d"], Float[Tensor, "N d"]],
    negative: tuple[Float[Tensor, "N d"], Float[Tensor, "N d"]],
    *,
    temperature: float = 0.05,
    negative_weight: float = 1.0,
    positive_scale: float = 1.0,
    ids: Int[Tensor, " N"] | None = None,
) -> Float[Tensor, ""]:
    """InfoNCE whose positives and negatives are of two pairs of views, for which noise may differ (ImSimCSE section 3.1): row i's
    positive is `s(positive_a_i, positive_b_i)`, its negatives are `s(negative_a_i, negative_b_j)`, j != i. With both pairs
    the same it is `info_nce` of them, layout "cross".

    Other arguments and errors as `off_dropout_info_nce`, whose negatives are of one clean view with itself.
    """
    check_temperature(temperature)
    if not negative_weight > 0:
        raise SettingsError(f"negative_weight must be above 0, got {negative_weight}; the paper uses 0.9")
    check_shapes("N d", a=positive[0], b=positive[1], c=negative[0], d=negative[1])
    check_negatives(len(positive[0]))
    found = positive_scale * cosines(*positive).diagonal() / temperature
    others = cosines(*negative) / temperature + math.log(negative_weight)
    own = torch.arange(len(others), device=others.device)
    others = without_duplicates(others, ids, own)
    everything = torch.cat([found[:, None], others.masked_fill(own[:, None] == own, -torch.inf)], dim=1)
    return (everything.logsumexp(dim=1) - found).mean()
