"""The modulus constraint: two vectors should agree in length as well as in direction (TNCSE L_TN, JTCSE L_TMC)."""

import math
from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor

from cselab.losses._inputs import at_least_float32, check_choice, check_shapes

LINEAR_BELOW = 0.05
"""Cosine under which -log continues as its tangent: the paper's -log is undefined for a cosine <= 0."""


def modulus_ratio(p: Float[Tensor, "N d"], q: Float[Tensor, "N d"]) -> Float[Tensor, " N"]:
    """`||p - q|| / (||p|| + ||q||)` row by row, from 0 (equal) to 1 (opposite); 0 where both rows are 0 (TNCSE l_TN).

    Its gradient is finite also at p = q and at 0, where a norm has none: it is taken as 0 there.

    Raises DataError for wrong shapes.
    """
    check_shapes("N d", p=p, q=q)
    p, q = at_least_float32(p), at_least_float32(q)
    difference, length_p, length_q = _lengths(p - q, p, q)
    lengths = length_p + length_q
    return difference / torch.where(lengths > 0, lengths, 1)


def modulus_surface(k: Float[Tensor, "*#shape"], t: Float[Tensor, "*#shape"]) -> Float[Tensor, "*#shape"]:
    """The same ratio from the norms' ratio k and the cosine t: `sqrt(1 + k^2 - 2kt) / (1 + k)`; minimum 0 at (1, 1)."""
    return (1 + k**2 - 2 * k * t).clamp(min=0).sqrt() / (1 + k)


def ictm(
    cls_i: Float[Tensor, "2 N d"],
    cls_ii: Float[Tensor, "2 N d"],
    pooled_i: Float[Tensor, "2 N d"],
    pooled_ii: Float[Tensor, "2 N d"],
    *,
    variant: Literal["paper", "released"] = "paper",
) -> Float[Tensor, ""]:
    """Inter-tower modulus constraint: the pooled outputs' ratio, weighted by -log of the [CLS] cosine (TNCSE L_ICTN).

    cls_*: [CLS] of the last layer, pooled_*: the pooler's output; two views each. A mean over the N sentences.
    variant: "paper": `-log s * (ratio(p_i[0], p_ii[1]) + ratio(p_ii[0], p_i[1]))` with s = sim(cls_i[0], cls_ii[0]),
        the same view of both towers. Below s = 0.05, -log continues as its tangent, so that the loss falls with s
        everywhere. "released": s between view a of one tower and view b of the other, 1e-4 where it is negative (which
        cuts the gradient there; at exactly 0 the loss is infinite), and half the ratio.

    One tower alone, `-log sim(h, h+) * ratio(p, p+)` (TNCSE Table 5), is `ictm(h, h.flip(0), p, p) / 2`; "released", which
    pairs the views itself and halves the ratio, is `ictm(h, h, p, p, variant="released") / 2`.

    Raises DataError for wrong shapes, SettingsError for an unknown variant.
    """
    check_choice("variant", variant, ("paper", "released"))
    check_shapes("2 N d", cls_i=cls_i, cls_ii=cls_ii, pooled_i=pooled_i, pooled_ii=pooled_ii)
    # view a of one tower against view b of the other, both ways at once: rows (v n)
    crossed = modulus_ratio(pooled_i.flatten(0, 1), pooled_ii.flip(0).flatten(0, 1)).unflatten(0, (2, -1))
    if variant == "paper":
        return (_extended_neg_log(_cosine(cls_i[0], cls_ii[0])) * crossed.sum(0)).mean()
    s = _cosine(cls_i, cls_ii.flip(0))
    weights = -torch.where(s < 0, torch.full_like(s, 1e-4), s).log()
    return (weights * crossed).mean()


def _extended_neg_log(s: Float[Tensor, " N"]) -> Float[Tensor, " N"]:
    tangent = (LINEAR_BELOW - s) / LINEAR_BELOW - math.log(LINEAR_BELOW)
    # The clamp keeps the unused branch finite: where() would otherwise multiply its infinite gradient by 0 into NaN.
    return torch.where(s < LINEAR_BELOW, tangent, -s.clamp(min=LINEAR_BELOW).log())


def _cosine(a: Float[Tensor, "*n d"], b: Float[Tensor, "*n d"]) -> Float[Tensor, "*n"]:
    a, b = at_least_float32(a), at_least_float32(b)
    length_a, length_b = _lengths(a, b)
    return (a * b).sum(-1) / (length_a * length_b).clamp(min=1e-8)


def _lengths(*rows: Float[Tensor, "*n d"]) -> tuple[Float[Tensor, "*n"], ...]:
    """`torch.linalg.vector_norm` of each, whose backward takes twice the passes over memory; 0 for rows shorter than 1e-15, where
    a gradient written by hand would overflow float32."""
    squares = torch.stack([x.square().sum(-1) for x in rows])
    enough = squares > 1e-30
    return (torch.where(enough, squares, 1).sqrt() * enough).unbind()
