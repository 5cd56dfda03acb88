"""SNCSE (Wang and Dou 2023): a negated sentence is a soft negative."""

from dataclasses import dataclass

import torch.nn.functional as F
from jaxtyping import Float
from pydantic import Field
from torch import Tensor

from cselab.data.augment import negate
from cselab.errors import SettingsError
from cselab.losses.inputs import at_least_float32, check_shapes
from cselab.methods.base import Batch, SentenceOutputs
from cselab.methods.baselines.promptbert import TEMPLATES, PromptBERT
from cselab.methods.context import StepContext
from cselab.methods.registry import register
from cselab.methods.terms import TermConfig, Terms, term


def bidirectional_margin(
    anchor: Float[Tensor, "N d"],
    positive: Float[Tensor, "N d"],
    soft_negative: Float[Tensor, "N d"],
    *,
    least: float = 0.1,
    most: float = 0.3,
) -> Float[Tensor, ""]:
    """Bidirectional margin loss: a negation is less similar than the positive, within bounds.

    SNCSE, https://arxiv.org/abs/2201.05979: `relu(Δ + least) + relu(-Δ - most)` with
    `Δ = cos(anchor, soft_negative) - cos(anchor, positive)`, a mean over rows. It is 0 where the
    negation's cosine is below the positive's by at least `least` and at most `most`.

    Args:
        anchor: Vectors of N sentences, (N, d).
        positive: Vectors of their other views, (N, d).
        soft_negative: Vectors of their negations, (N, d).
        least: Smallest difference of cosines without a loss.
        most: Largest one.

    Raises:
        DataError: For wrong shapes.
        SettingsError: Unless 0 <= least <= most.

    Examples:
        >>> import torch
        >>> from cselab.methods.baselines.sncse import bidirectional_margin
        >>> x = torch.eye(4)
        >>> f"{bidirectional_margin(x, x, x).item():.1f}"  # no difference: least
        '0.1'
    """
    if not 0 <= least <= most:
        raise SettingsError(
            f"expected 0 <= least <= most, got {least} and {most}; SNCSE uses 0.1 and 0.3"
        )
    check_shapes("N d", anchor=anchor, positive=positive, soft_negative=soft_negative)
    anchor, positive, negative = map(at_least_float32, (anchor, positive, soft_negative))
    difference = F.cosine_similarity(anchor, negative) - F.cosine_similarity(anchor, positive)
    return (F.relu(difference + least) + F.relu(-difference - most)).mean()


@dataclass(frozen=True, kw_only=True)
class NegatedOutputs(SentenceOutputs):
    """Also the vectors of the negated sentences, (1, N, d)."""

    negated: Tensor


class SoftNegative(TermConfig):
    """The band of how much less alike than its positive a sentence's negated copy is."""

    weight: float = Field(0.001, ge=0)
    least: float = 0.1
    most: float = 0.3


@register("sncse")
class SNCSE(PromptBERT):
    """PromptBERT's InfoNCE, and a band for how much less alike than its positive a sentence's
    negated copy is: 0.1 to 0.3 of cosine (https://arxiv.org/abs/2201.05979).

    Simplified: the negation is a rule on words (`cselab.data.augment.negate`), where the paper
    parses.
    """

    class Config(PromptBERT.Config):
        terms: Terms = {"nce": 1, "soft_negative": 0.001}

    paper_row = "SNCSE"
    own_views = ("negate",)

    def forward(self, batch: Batch) -> SentenceOutputs:
        outputs = super().forward(batch)
        if "soft_negative" not in self.terms:
            return outputs
        negated = self.denoised(negate(self.texts(batch), self.tokens), TEMPLATES[0])
        return NegatedOutputs(**outputs.tensors(), negated=negated[None])

    @term(SoftNegative, reads_text=True)
    def soft_negative(self, outputs: NegatedOutputs, step: StepContext) -> Float[Tensor, ""]:
        """The bidirectional margin loss."""
        config = self.terms["soft_negative"]
        a, b = outputs.sentence
        return bidirectional_margin(a, b, outputs.negated[0], least=config.least, most=config.most)
