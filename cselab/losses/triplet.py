"""Supervised InfoNCE with hard negatives (SimCSE Eq. 5, BeLLM Eq. 6)."""

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

from cselab.losses.info_nce import cosines
from cselab.losses.inputs import check_negatives, check_shapes, check_temperature


def triplet_info_nce(
    anchor: Float[Tensor, "N d"],
    positive: Float[Tensor, "N d"],
    negative: Float[Tensor, "N d"],
    *,
    temperature: float = 0.05,
) -> Float[Tensor, ""]:
    """InfoNCE with hard negatives: each anchor finds its positive among the whole batch.

    SimCSE Eq. 5, https://arxiv.org/abs/2104.08821; BeLLM Eq. 6, https://arxiv.org/abs/2311.05296.
    The candidates are all positives and all hard negatives of the batch; a mean over anchors.

    Raises:
        DataError: For wrong shapes, or N < 2.
        SettingsError: For a temperature not above 0.

    Examples:
        >>> import torch
        >>> from cselab.losses import triplet_info_nce
        >>> x = torch.eye(4)
        >>> f"{triplet_info_nce(x, x, -x, temperature=1.0).item():.4f}"  # log(1 + 6/e + 1/e^2)
        '1.2068'
    """
    check_temperature(temperature)
    check_shapes("N d", anchor=anchor, positive=positive, negative=negative)
    check_negatives(len(anchor))
    logits = torch.cat([cosines(anchor, positive), cosines(anchor, negative)], dim=1) / temperature
    return F.cross_entropy(logits, torch.arange(len(anchor), device=anchor.device))
