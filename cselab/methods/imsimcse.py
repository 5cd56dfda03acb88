"""ImSimCSE, published as SimCSE++ (Xu et al. 2023): negatives without dropout noise, and a
contrast between dimensions."""

from typing import Literal

from cselab.methods.differences import Difference
from cselab.methods.registry import register
from cselab.methods.simcse import SimCSE
from cselab.methods.terms import Terms


@register("imsimcse")
class ImSimCSE(SimCSE):
    """`L = L_off-info + 0.1 L_DCL` (https://arxiv.org/abs/2305.13192, Eq. 3 and 5); alone, they are
    the terms ["off_info"] and ["nce", "dcl"].

    The clean pass has no dropout and draws no random number; the gradient flows through it.
    """

    class Config(SimCSE.Config):
        """ImSimCSE's settings; the schedule is SimCSE's, as the paper has it."""

        head: Literal["none", "mlp_train_only"] = "mlp_train_only"
        """ImSimCSE section 5.1; released: `--mlp_only_train` in each script."""
        terms: Terms = {"off_info": 1, "dcl": 0.1}

    paper_row = "ImSimCSE"
    differences = (
        Difference(
            name="negatives and positives without dropout",
            paper="m = 0.9 weighs the negatives",
            released="pos_ratio = 0.9 (one script) or 1 (the combined one) scales the positive "
            "similarity; no m",
            here="paper",
            term="off_info",
            change={"terms.off_info.negative_weight": 1.0, "terms.off_info.positive_scale": 0.9},
        ),
        Difference(
            name="DCL",
            paper="unbiased deviation, a sum over dimensions",
            released="batch norm's deviation, divided by N, a mean over dimensions; commented out "
            "in the combined script",
            here="released, what λ = 0.1 and τ = 5 belong to",
            term="dcl",
            change={"terms.dcl.variant": "paper"},
            labels=("released", "paper"),
            preset=False,
        ),
        Difference(
            name="head in training",
            paper="an MLP head in training, dropped afterwards (section 5.1)",
            released="the same: `--mlp_only_train` in each script",
            here='the same; `head="none"` reads the raw [CLS]',
            term="off_info",
            change={"head": "none"},
            labels=("MLP head", "no head"),
            preset=False,
        ),
        Difference(
            name="ImSimCSE's scripts",
            paper="off-info and 0.1 DCL at τ = 5 in one training",
            released='`run_re_vicreg.sh` never sets `--sampling_strategy` (default "None"), so the '
            "command of the README trains plain SimCSE with DCL commented out; the script for "
            "SimCSE with DCL hard-codes temperature 10 (its help text says 20)",
            here="paper",
        ),
        Difference(
            name="Barlow Twins' weight and sign",
            paper="λ_BT without a value, a leading minus (a misprint)",
            released="0.012, no minus",
            here="released",
        ),
    )
