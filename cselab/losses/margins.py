"""InfoNCE with a margin on the positive's angle (ArcCSE)."""

import math

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor

from cselab.errors import SettingsError
from cselab.losses.info_nce import cosines, without_duplicates
from cselab.losses.inputs import check_negatives, check_shapes, check_temperature

TINY = 1e-7


def arc_con(
    a: Float[Tensor, "N d"],
    b: Float[Tensor, "N d"],
    *,
    margin: float = 10.0,
    temperature: float = 0.05,
    ids: Int[Tensor, " N"] | None = None,
) -> Float[Tensor, ""]:
    """ArcCon: InfoNCE with `margin` degrees added to the angle of each positive pair.

    ArcCSE, https://aclanthology.org/2022.acl-long.336. With margin 0 it is `info_nce`.

    Args:
        b: The other view; row i is the positive of row i of `a`.
        margin: Degrees, from 0 to 90.
        ids: As in `info_nce`.

    Raises:
        DataError: For wrong shapes, or N < 2.
        SettingsError: For a temperature not above 0, or a margin outside [0, 90].

    Examples:
        >>> import torch
        >>> from cselab.losses import arc_con
        >>> sentences = torch.eye(4)
        >>> f"{arc_con(sentences, sentences, margin=90.0, temperature=1.0).item():.3f}"  # log 4
        '1.387'
    """
    check_temperature(temperature)
    if not 0 <= margin <= 90:
        raise SettingsError(f"margin must be 0 to 90 degrees, got {margin}; ArcCSE uses 10")
    check_shapes("N d", a=a, b=b)
    check_negatives(len(a))
    similarities, angle = cosines(a, b), math.radians(margin)
    cosine = similarities.diagonal()
    # clamped: the square root's slope is infinite where two views are equal
    sine = (1 - cosine.square()).clamp_min(TINY).sqrt()
    enlarged = cosine * math.cos(angle) - sine * math.sin(angle)
    positive = torch.arange(len(a), device=a.device)
    diagonal = positive[:, None] == positive
    logits = torch.where(diagonal, enlarged[:, None], similarities) / temperature
    return F.cross_entropy(without_duplicates(logits, ids, positive), positive)
