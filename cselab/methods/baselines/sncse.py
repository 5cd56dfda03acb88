"""SNCSE (Wang and Dou 2023): a negated sentence is a soft negative."""

from dataclasses import replace

import torch.nn.functional as F
from jaxtyping import Float
from pydantic import Field
from torch import Tensor

from cselab.data.augment import negate
from cselab.errors import SettingsError
from cselab.losses.inputs import at_least_float32, check_shapes
from cselab.methods import Batch, SentenceOutputs, StepContext, TermConfig, Terms, register, term
from cselab.methods.baselines.promptbert import TEMPLATES, PromptBERT


def bidirectional_margin(
    anchor: Float[Tensor, "N d"],
    positive: Float[Tensor, "N d"],
    soft_negative: Float[Tensor, "N d"],
    *,
    least: float = 0.1,
    most: float = 0.3,
) -> Float[Tensor, ""]:
    """Bidirectional margin loss: `relu(Δ + least) + relu(-Δ - most)` with `Δ = cos(anchor,
    soft_negative) - cos(anchor, positive)`, a mean over rows (SNCSE,
    https://arxiv.org/abs/2201.05979). It is 0 where the negation's cosine is below the positive's
    by at least `least` and at most `most`."""
    if not 0 <= least <= most:
        raise SettingsError(f"expected 0 <= least <= most, got {least} and {most}")
    check_shapes("N d", anchor=anchor, positive=positive, soft_negative=soft_negative)
    anchor, positive, negative = map(at_least_float32, (anchor, positive, soft_negative))
    difference = F.cosine_similarity(anchor, negative) - F.cosine_similarity(anchor, positive)
    return (F.relu(difference + least) + F.relu(-difference - most)).mean()


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
        """Add the vectors of the negated sentences, (1, N, d)."""
        outputs = super().forward(batch)
        if "soft_negative" not in self.terms:
            return outputs
        negated = self.denoised(negate(self.texts(batch), self.tokens), TEMPLATES[0])
        return replace(outputs, extra=negated[None])

    @term(SoftNegative, reads_text=True)
    def soft_negative(self, outputs: SentenceOutputs, step: StepContext) -> Float[Tensor, ""]:
        """The bidirectional margin loss."""
        config = self.terms["soft_negative"]
        a, b = outputs.sentence
        return bidirectional_margin(a, b, outputs.extra[0], least=config.least, most=config.most)
