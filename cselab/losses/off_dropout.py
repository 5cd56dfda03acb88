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
    check_temperature(temperature)
    if not negative_weight > 0:
        raise SettingsError(f"negative_weight must be above 0, got {negative_weight}; the paper uses 0.9")
    check_shapes("N d", a=a, b=b, clean=clean)
    check_negatives(len(a))
    positive = positive_scale * cosines(a, b).diagonal() / temperature
    negative = cosines(clean, clean) / temperature + math.log(negative_weight)
    own = torch.arange(len(a), device=a.device)
    negative = without_duplicates(negative, ids, own)
    everything = torch.cat([positive[:, None], negative.masked_fill(own[:, None] == own, -torch.inf)], dim=1)
    return (everything.logsumexp(dim=1) - positive).mean()
