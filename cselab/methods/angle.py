"""AnglE (Li and Li 2024): pairs in order by cosine and by angle in complex space."""

import torch
from jaxtyping import Float
from pydantic import Field
from torch import Tensor

from cselab.losses import complex_agreement, cosent
from cselab.methods.base import SentenceOutputs
from cselab.methods.context import StepContext
from cselab.methods.registry import register
from cselab.methods.supervised import SupervisedSimCSE
from cselab.methods.terms import TermConfig, Terms, term


class Angle(TermConfig):
    """The temperature of the angle's order."""

    temperature: float = Field(1.0, gt=0)


@register("angle")
class AnglE(SupervisedSimCSE):
    """The pairs of a triplet in order by cosine and in complex space, the entailed above the
    contradicting, and the in-batch term "triplet" (https://arxiv.org/abs/2309.12871).

    Simplified: labels are two, entailed and contradicting, where the paper also has graded ones.
    """

    class Config(SupervisedSimCSE.Config):
        """AnglE's settings; the schedule is supervised SimCSE's."""

        terms: Terms = {"ordered": 1, "triplet": 1, "angle": 1}

    @term
    def ordered(self, outputs: SentenceOutputs, step: StepContext) -> Float[Tensor, ""]:
        """Every entailed pair is more alike than every contradicting one."""
        anchor, *others = outputs.sentence
        scores = torch.cat([torch.cosine_similarity(anchor, other, dim=-1) for other in others])
        return cosent(scores, _labels(anchor), temperature=self.settings.temperature)

    @term(Angle)
    def angle(self, outputs: SentenceOutputs, step: StepContext) -> Float[Tensor, ""]:
        """And its quotient in the complex plane is nearer to 1."""
        anchor, *others = outputs.sentence
        scores = torch.cat([complex_agreement(anchor, other) for other in others])
        return cosent(scores, _labels(anchor), temperature=self.terms["angle"].temperature)


def _labels(anchor: Tensor) -> Tensor:
    return torch.tensor([1.0, 0.0], device=anchor.device).repeat_interleave(len(anchor))
