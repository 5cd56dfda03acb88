"""SNCSE (Wang and Dou 2023): a negated sentence is a soft negative."""

from dataclasses import dataclass

from jaxtyping import Float
from pydantic import Field
from torch import Tensor

from cselab.data.augment import negate
from cselab.losses import bidirectional_margin
from cselab.methods.base import Batch, SentenceOutputs
from cselab.methods.context import StepContext
from cselab.methods.prompted import TEMPLATES, PromptBERT
from cselab.methods.registry import register
from cselab.methods.terms import TermConfig, Terms, term


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
        """SNCSE's settings; the schedule is SimCSE's."""

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
