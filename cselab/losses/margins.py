"""Losses with a margin: an angle inside InfoNCE, a hinge between cosines, bounds for a negation."""

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
    """ArcCon: InfoNCE with `margin` degrees added to the angle of each positive pair.

    ArcCSE, https://aclanthology.org/2022.acl-long.336. With margin 0 it is `info_nce`.

    Args:
        a: One view of N sentences, (N, d).
        b: The other view, (N, d); row i is the positive of row i of `a`.
        margin: Degrees, from 0 to 90.
        temperature: What cosines are divided by.
        ids: As in `info_nce`.

    Returns:
        The loss, a scalar.

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


def distance_hinge(
    anchor: Float[Tensor, "N d"],
    near: Float[Tensor, "N d"],
    far: Float[Tensor, "N d"],
    *,
    margin: float = 0.0,
) -> Float[Tensor, ""]:
    """Triplet hinge: `max(0, cos(anchor, far) - cos(anchor, near) + margin)`, a mean over rows.

    ArcCSE, https://aclanthology.org/2022.acl-long.336.

    Args:
        anchor: Vectors of N sentences, (N, d).
        near: Vectors of the lightly masked sentences, (N, d).
        far: Vectors of the heavily masked sentences, (N, d).
        margin: By how much the cosine with `near` must exceed that with `far`.

    Returns:
        The loss, a scalar.

    Raises:
        DataError: For wrong shapes.

    Examples:
        >>> import torch
        >>> from cselab.losses import distance_hinge
        >>> x = torch.eye(4)
        >>> distance_hinge(x, near=x.roll(1, 0), far=x, margin=0.5).item()  # 1 - 0 + 0.5
        1.5
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
    """Bidirectional margin loss: a negation is less similar than the positive, within bounds.

    SNCSE, https://arxiv.org/abs/2201.05979: `relu(Δ + least) + relu(-Δ - most)` with
    `Δ = cos(anchor, soft_negative) - cos(anchor, positive)`, a mean over rows. It is 0 where the
    negation's cosine is below the positive's by at least `least` and at most `most`.

    Args:
        anchor: Vectors of N sentences, (N, d).
        positive: Vectors of their other views, (N, d).
        soft_negative: Vectors of their negations, (N, d).
        least: Smallest difference of cosines without a loss.
        most: Largest one.

    Returns:
        The loss, a scalar.

    Raises:
        DataError: For wrong shapes.
        SettingsError: Unless 0 <= least <= most.

    Examples:
        >>> import torch
        >>> from cselab.losses import bidirectional_margin
        >>> x = torch.eye(4)
        >>> f"{bidirectional_margin(x, x, x).item():.1f}"  # no difference: least
        '0.1'
    """
    if not 0 <= least <= most:
        raise SettingsError(
            f"expected 0 <= least <= most, got {least} and {most}; SNCSE uses 0.1 and 0.3"
        )
    check_shapes("N d", anchor=anchor, positive=positive, soft_negative=soft_negative)
    difference = _cosine(anchor, soft_negative) - _cosine(anchor, positive)
    return (F.relu(difference + least) + F.relu(-difference - most)).mean()


def _cosine(a: Tensor, b: Tensor) -> Tensor:
    return F.cosine_similarity(at_least_float32(a), at_least_float32(b), dim=-1)
