"""ImSimCSE, published as SimCSE++ (Xu et al. 2023)."""

from typing import Literal

from cselab.methods import Terms, register
from cselab.methods.simcse import SimCSE


@register("imsimcse")
class ImSimCSE(SimCSE):
    """`L = L_off-info + 0.1 L_DCL`: negatives without dropout noise, and a contrast between
    dimensions (https://arxiv.org/abs/2305.13192, Eq. 3 and 5). Alone, they are the terms
    ["off_info"] and ["nce", "dcl"].

    The clean pass has no dropout and draws no random number; the gradient flows through it.
    """

    class Config(SimCSE.Config):
        head: Literal["none", "mlp_train_only"] = "mlp_train_only"
        """ImSimCSE section 5.1; released: `--mlp_only_train` in each script."""
        terms: Terms = {"off_info": 1, "dcl": 0.1}

    paper_row = "ImSimCSE"
    released = {"terms.off_info.negative_weight": 1.0, "terms.off_info.positive_scale": 0.9}
