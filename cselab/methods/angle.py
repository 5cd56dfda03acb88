"""AnglE (Li and Li 2024): pairs in order by cosine and by angle in complex space."""

import torch
from jaxtyping import Float
from torch import Tensor

from cselab.losses import complex_agreement, pairs_in_order
from cselab.methods.base import Ids, Vectors, register
from cselab.methods.context import StepContext
from cselab.methods.supervised import SupervisedSimCSE


@register("angle")
class AnglE(SupervisedSimCSE):
    """The pairs of a triplet in order by cosine and in complex space, the entailed above the contradicting, and the in-batch term
    "triplet".

    Simplified: labels are two, entailed and contradicting, where the paper also has graded ones.
    """

    own_terms = ("triplet", "ordered", "angle")
    default_terms = ("ordered", "triplet", "angle")
    knobs = ("angle_temperature:1.0",)

    def ordered(self, vectors: Vectors, context: StepContext, ids: Ids) -> Float[Tensor, ""]:
        """Every entailed pair is more alike than every contradicting one."""
        anchor, *others = vectors["sentence"]
        scores = torch.cat([torch.cosine_similarity(anchor, other, dim=-1) for other in others])
        return pairs_in_order(scores, _labels(anchor), temperature=self.settings.temperature)

    def angle(self, vectors: Vectors, context: StepContext, ids: Ids) -> Float[Tensor, ""]:
        """And its quotient in the complex plane is nearer to 1."""
        anchor, *others = vectors["sentence"]
        scores = torch.cat([complex_agreement(anchor, other) for other in others])
        return pairs_in_order(scores, _labels(anchor), temperature=self.knob["angle_temperature"])


def _labels(anchor: Tensor) -> Tensor:
    return torch.tensor([1.0, 0.0], device=anchor.device).repeat_interleave(len(anchor))
