"""Losses with a margin: an angle inside InfoNCE, a hinge between distances, a band for a soft negative."""

import math

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor

from cselab.errors import SettingsError
from cselab.losses._inputs import at_least_float32, check_negatives, check_shapes, check_temperature
from cselab.losses.info_nce import cosines, without_duplicates

TINY = 1e-7


def arc_con(
    a: Float[Tensor, "N d"],
    b: Float[Tensor, "N d"],
    *,
    margin: float = 10.0,
    temperature: float = 0.05,
    ids: Int[Tensor, " N"] | None = None,
) -> Float[Tensor, ""]:
    """InfoNCE whose positives are judged as if their angle were `margin` degrees larger (ArcCSE); with 0 it is `info_nce`.

    Raises DataError for wrong shapes or N < 2, SettingsError for a temperature not above 0 or a margin outside [0, 90].
    """
    check_temperature(temperature)
    if not 0 <= margin <= 90:
        raise SettingsError(f"margin must be 0 to 90 degrees, got {margin}; ArcCSE uses 10")
    check_shapes("N d", a=a, b=b)
    check_negatives(len(a))
    found, angle = cosines(a, b), math.radians(margin)
    own = found.diagonal()
    sine = (1 - own.square()).clamp_min(TINY).sqrt()  # its slope is infinite where two views are one
    enlarged = own * math.cos(angle) - sine * math.sin(angle)
    positive = torch.arange(len(a), device=a.device)
    logits = torch.where(positive[:, None] == positive, enlarged[:, None], found) / temperature
    return F.cross_entropy(without_duplicates(logits, ids, positive), positive)


def distance_hinge(
    anchor: Float[Tensor, "N d"], near: Float[Tensor, "N d"], far: Float[Tensor, "N d"], *, margin: float = 0.0
) -> Float[Tensor, ""]:
    """`max(0, cos(anchor, far) - cos(anchor, near) + margin)`, a mean over rows (ArcCSE: masked lightly, masked heavily).

    Raises DataError for wrong shapes.
    """
    check_shapes("N d", anchor=anchor, near=near, far=far)
    return F.relu(_cosine(anchor, far) - _cosine(anchor, near) + margin).mean()


def bidirectional_margin(
    anchor: Float[Tensor, "N d"],
    positive: Float[Tensor, "N d"],
    soft_negative: Float[Tensor, "N d"],
    *,
    least: float = 0.1,
    most: float = 0.3,
) -> Float[Tensor, ""]:
    """SNCSE: `relu(Δ + least) + relu(-Δ - most)` of `Δ = cos(anchor, soft_negative) - cos(anchor, positive)`, a mean over rows:
    a negated sentence is less alike than the positive by `least` to `most`, no less and no more.

    Raises DataError for wrong shapes, SettingsError unless 0 <= least <= most.
    """
    if not 0 <= least <= most:
        raise SettingsError(f"expected 0 <= least <= most, got {least} and {most}; SNCSE uses 0.1 and 0.3")
    check_shapes("N d", anchor=anchor, positive=positive, soft_negative=soft_negative)
    difference = _cosine(anchor, soft_negative) - _cosine(anchor, positive)
    return (F.relu(difference + least) + F.relu(-difference - most)).mean()


def _cosine(a: Tensor, b: Tensor) -> Tensor:
    return F.cosine_similarity(at_least_float32(a), at_least_float32(b), dim=-1)
