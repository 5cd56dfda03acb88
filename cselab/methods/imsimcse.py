"""ImSimCSE, published as SimCSE++ (Xu et al. 2023): negatives without dropout noise, and a contrast between dimensions."""

from cselab.methods.base import register
from cselab.methods.simcse import SimCSE


@register("imsimcse")
class ImSimCSE(SimCSE):
    """`L = L_off-info + 0.1 L_DCL` (Eq. 3, 5); alone, they are `terms="off_info"` and `terms="nce,dcl"`.

    The clean pass has no dropout and draws no random number; the gradient flows through it. `negative_weight` is the paper's
    m, `positive_scale` the released code's pos_ratio, `dcl` which of the two wordings of Eq. 5 (its weight belongs to "released").
    """

    default_terms = ("off_info", "dcl")
