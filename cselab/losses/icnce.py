"""InfoNCE across two towers: TNCSE's L_ICNCE, one stream of JTCSE Eq. 12."""

from typing import Literal

from einops import rearrange
from jaxtyping import Float, Int
from torch import Tensor

from cselab.losses.info_nce import cosines, info_nce, other_view_cross_entropy
from cselab.losses.inputs import check_choice, check_negatives, check_shapes, check_temperature


def icnce(
    cls_i: Float[Tensor, "2 N d"],
    cls_ii: Float[Tensor, "2 N d"],
    *,
    temperature: float = 0.05,
    variant: Literal["paper", "released"] = "paper",
    ids: Int[Tensor, " N"] | None = None,
) -> Float[Tensor, ""]:
    """InfoNCE across towers: each sentence of tower I finds itself among those of tower II.

    TNCSE, https://arxiv.org/abs/2503.12739; JTCSE Eq. 12, https://arxiv.org/abs/2505.02366.

    Args:
        cls_i: [CLS] of tower I, the anchor, in both views.
        variant: "paper": the mean over the two views of `info_nce(cls_i[v], cls_ii[v])`.
            "released": 2N x 2N logits between the towers' views, without the diagonal: the same
            view of the same sentence in the other tower is neither positive nor negative; the
            positive is the other view of the same sentence.
        ids: As in `info_nce`.

    Raises:
        DataError: For wrong shapes, or N < 2.
        SettingsError: For an unknown variant, or a temperature not above 0.

    Examples:
        >>> import torch
        >>> from cselab.losses import icnce
        >>> tower = torch.eye(4).expand(2, 4, 4)
        >>> f"{icnce(tower, tower, temperature=1.0).item():.4f}"  # log(1 + 3/e)
        '0.7437'
    """
    check_choice("variant", variant, ("paper", "released"))
    check_temperature(temperature)
    check_shapes("2 N d", cls_i=cls_i, cls_ii=cls_ii)
    check_negatives(cls_i.shape[1])
    if variant == "paper":
        views = zip(cls_i, cls_ii, strict=True)
        return sum(info_nce(i, ii, temperature=temperature, ids=ids) for i, ii in views) / 2
    rows, columns = (rearrange(cls, "v n d -> (v n) d") for cls in (cls_i, cls_ii))
    return other_view_cross_entropy(cosines(rows, columns) / temperature, ids)
