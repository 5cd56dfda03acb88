"""AnglE (Li and Li 2024): pairs in order by cosine and by angle in complex space."""

import torch
import torch.nn.functional as F
from jaxtyping import Float
from pydantic import Field
from torch import Tensor

from cselab.errors import DataError
from cselab.losses.inputs import at_least_float32, check_shapes, check_temperature
from cselab.methods import SentenceOutputs, StepContext, TermConfig, Terms, register, term
from cselab.methods.baselines.supervised import SupervisedSimCSE


def cosent(
    scores: Float[Tensor, " P"], labels: Float[Tensor, " P"], *, temperature: float = 0.05
) -> Float[Tensor, ""]:
    """CoSENT: a soft count of the pairs whose scores are in the wrong order, whatever their labels.

    `log(1 + sum of exp((scores_j - scores_i) / temperature))`, the sum over i, j with
    labels_i > labels_j (https://kexue.fm/archives/8847). AnglE uses it with cosines and with
    `complex_agreement` (https://arxiv.org/abs/2309.12871).
    """
    check_temperature(temperature)
    if scores.shape != labels.shape or scores.ndim != 1:
        shapes = f"{tuple(scores.shape)} scores and {tuple(labels.shape)} labels"
        raise DataError(f"expected one label per score, got {shapes}")
    scores = at_least_float32(scores) / temperature
    wrong = (scores[None, :] - scores[:, None])[labels[:, None] > labels[None, :]]
    return torch.logsumexp(torch.cat([wrong.new_zeros(1), wrong]), dim=0)


def complex_agreement(a: Float[Tensor, "N d"], b: Float[Tensor, "N d"]) -> Float[Tensor, " N"]:
    """AnglE's similarity of complex vectors: |sum of the real and imaginary parts of a / b|
    (https://arxiv.org/abs/2309.12871).

    The first half of a vector is its real part, the second its imaginary part; the moduli are
    divided out. The paper calls it an angle difference; but it is 1 for equal vectors and about 0
    for unrelated ones, and the released code ranks it as a similarity, as is done here.
    """
    check_shapes("N d", a=a, b=b)
    if a.shape[1] % 2:
        raise DataError(f"{a.shape[1]} dimensions have no halves for real and imaginary parts")
    a, b = (torch.complex(*F.normalize(at_least_float32(x), dim=1).chunk(2, dim=1)) for x in (a, b))
    quotient = a * b.conj()  # of unit vectors: a / b with the moduli divided out
    return (quotient.real + quotient.imag).sum(dim=1).abs()


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
        terms: Terms = {"ordered": 1, "triplet": 1, "angle": 1}

    @term
    def ordered(self, outputs: SentenceOutputs, step: StepContext) -> Float[Tensor, ""]:
        """Every entailed pair is more alike than every contradicting one."""
        anchor, *others = outputs.sentence
        scores = torch.cat([torch.cosine_similarity(anchor, other, dim=-1) for other in others])
        return cosent(scores, _labels(anchor), temperature=self.settings.temperature)

    @term(Angle)
    def angle(self, outputs: SentenceOutputs, step: StepContext) -> Float[Tensor, ""]:
        """The quotient of an entailed pair in the complex plane is nearer to 1."""
        anchor, *others = outputs.sentence
        scores = torch.cat([complex_agreement(anchor, other) for other in others])
        return cosent(scores, _labels(anchor), temperature=self.terms["angle"].temperature)


def _labels(anchor: Tensor) -> Tensor:
    return torch.tensor([1.0, 0.0], device=anchor.device).repeat_interleave(len(anchor))
