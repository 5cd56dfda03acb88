"""Modulus constraint: two vectors agree in length as in direction (TNCSE L_TN, JTCSE L_TMC)."""

import math
from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor

from cselab.losses.inputs import at_least_float32, check_choice, check_shapes

LINEAR_BELOW = 0.05
"""Below this cosine, -log continues as its tangent: -log of a cosine <= 0 is undefined."""


def modulus_ratio(p: Float[Tensor, "N d"], q: Float[Tensor, "N d"]) -> Float[Tensor, " N"]:
    """Modulus ratio `||p - q|| / (||p|| + ||q||)` of each row: 0 if equal, 1 if opposite.

    TNCSE's l_TN, https://arxiv.org/abs/2503.12739. It is 0 where both rows are 0. Its gradient is
    taken as 0 at p = q and at 0, where a norm has none.

    Raises:
        DataError: For wrong shapes.

    Examples:
        >>> import torch
        >>> from cselab.losses import modulus_ratio
        >>> modulus_ratio(torch.tensor([[1.0, 0.0]]), torch.tensor([[3.0, 0.0]]))  # 2 / (1 + 3)
        tensor([0.5000])
    """
    check_shapes("N d", p=p, q=q)
    p, q = at_least_float32(p), at_least_float32(q)
    difference, length_p, length_q = _lengths(p - q, p, q)
    lengths = length_p + length_q
    return difference / torch.where(lengths > 0, lengths, 1)


def modulus_surface(
    k: Float[Tensor, "*#shape"], t: Float[Tensor, "*#shape"]
) -> Float[Tensor, "*#shape"]:
    """`modulus_ratio` as a function of the norms' ratio k and the cosine t.

    `sqrt(1 + k^2 - 2kt) / (1 + k)`, minimum 0 at k = t = 1 (TNCSE,
    https://arxiv.org/abs/2503.12739).

    Args:
        k: `||q|| / ||p||`, above 0.
        t: cos(p, q); its shape broadcasts with that of k.

    Examples:
        >>> import torch
        >>> from cselab.losses import modulus_surface
        >>> modulus_surface(torch.tensor([1.0, 3.0]), torch.tensor([1.0, 1.0]))
        tensor([0.0000, 0.5000])
    """
    return (1 + k**2 - 2 * k * t).clamp(min=0).sqrt() / (1 + k)


def ictm(
    cls_i: Float[Tensor, "2 N d"],
    cls_ii: Float[Tensor, "2 N d"],
    pooled_i: Float[Tensor, "2 N d"],
    pooled_ii: Float[Tensor, "2 N d"],
    *,
    variant: Literal["paper", "released"] = "paper",
) -> Float[Tensor, ""]:
    """Inter-tower modulus constraint: the modulus ratio, weighted by -log of the [CLS] cosine.

    TNCSE's L_ICTN, https://arxiv.org/abs/2503.12739; L_ICTM in JTCSE,
    https://arxiv.org/abs/2505.02366. A mean over the N sentences.

    One tower alone, `-log sim(h, h+) * ratio(p, p+)` (TNCSE Table 5), is
    `ictm(h, h.flip(0), p, p) / 2`; "released", which pairs the views itself and halves the ratio,
    is `ictm(h, h, p, p, variant="released") / 2`.

    Args:
        pooled_i: Tower I's pooler output, in both views; the ratios are between these.
        variant: "paper": `-log s * (ratio(p_i[0], p_ii[1]) + ratio(p_ii[0], p_i[1]))` with
            `s = sim(cls_i[0], cls_ii[0])`, the same view of both towers. Below s = 0.05, -log
            continues as its tangent, so that the loss falls with s everywhere. "released": s
            between view a of one tower and view b of the other, 1e-4 where it is negative (which
            cuts the gradient there; at exactly 0 the loss is infinite), and half the ratio.

    Raises:
        DataError: For wrong shapes.
        SettingsError: For an unknown variant.

    Examples:
        >>> import torch
        >>> from cselab.losses import ictm
        >>> tower = torch.ones(2, 4, 8)
        >>> ictm(tower, tower, tower, tower).item()  # equal towers
        0.0
        >>> cls = torch.tensor([[[1.0, 0.0]]]).expand(2, 1, 2)
        >>> half = torch.tensor([[[0.6, 0.8]]]).expand(2, 1, 2)  # cosine 0.6
        >>> f"{ictm(cls, half, cls, 3 * cls).item():.4f}"  # -log 0.6, times 2 ratios of 0.5
        '0.5108'
    """
    check_choice("variant", variant, ("paper", "released"))
    check_shapes("2 N d", cls_i=cls_i, cls_ii=cls_ii, pooled_i=pooled_i, pooled_ii=pooled_ii)
    # view a of one tower against view b of the other, both ways at once: rows (v n)
    ratios = modulus_ratio(pooled_i.flatten(0, 1), pooled_ii.flip(0).flatten(0, 1))
    crossed = ratios.unflatten(0, (2, -1))
    if variant == "paper":
        return (_extended_neg_log(_cosine(cls_i[0], cls_ii[0])) * crossed.sum(0)).mean()
    s = _cosine(cls_i, cls_ii.flip(0))
    weights = -torch.where(s < 0, torch.full_like(s, 1e-4), s).log()
    return (weights * crossed).mean()


def _extended_neg_log(s: Float[Tensor, " N"]) -> Float[Tensor, " N"]:
    tangent = (LINEAR_BELOW - s) / LINEAR_BELOW - math.log(LINEAR_BELOW)
    # The clamp keeps the unused branch finite: where() would otherwise multiply its infinite
    # gradient by 0 into NaN.
    return torch.where(s < LINEAR_BELOW, tangent, -s.clamp(min=LINEAR_BELOW).log())


def _cosine(a: Float[Tensor, "*n d"], b: Float[Tensor, "*n d"]) -> Float[Tensor, "*n"]:
    a, b = at_least_float32(a), at_least_float32(b)
    length_a, length_b = _lengths(a, b)
    return (a * b).sum(-1) / (length_a * length_b).clamp(min=1e-8)


def _lengths(*rows: Float[Tensor, "*n d"]) -> tuple[Float[Tensor, "*n"], ...]:
    """Norms of the rows of each tensor.

    0 for rows shorter than 1e-15, whose gradient would overflow float32. Written out because the
    backward of `torch.linalg.vector_norm` takes twice the passes over memory.
    """
    squares = torch.stack([x.square().sum(-1) for x in rows])
    large_enough = squares > 1e-30
    return (torch.where(large_enough, squares, 1).sqrt() * large_enough).unbind()
