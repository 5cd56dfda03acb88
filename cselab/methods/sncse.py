"""SNCSE (Wang and Dou 2023): a negated sentence is a soft negative."""

from jaxtyping import Float
from torch import Tensor

from cselab.data.augment import negate
from cselab.losses import bidirectional_margin
from cselab.methods.base import Batch, Ids, Vectors, register
from cselab.methods.context import StepContext
from cselab.methods.prompted import TEMPLATES, PromptBERT


@register("sncse")
class SNCSE(PromptBERT):
    """PromptBERT's InfoNCE, and a band for how much less alike than its positive a sentence's negated copy is: 0.1 to 0.3 of cosine.

    Simplified: the negation is a rule on words (`cselab.data.augment.negate`), where the paper parses.
    """

    own_terms = text_terms = ("soft_negative",)
    default_terms = ("nce", "soft_negative:0.001")
    knobs = ("least:0.1", "most:0.3")

    def forward(self, batch: Batch) -> Vectors:
        vectors = super().forward(batch)
        if "soft_negative" in self.terms:
            negated = self.denoised(negate(self.texts(batch), self.tokens), TEMPLATES[0])
            vectors["negated"] = negated[None]
        return vectors

    def soft_negative(self, vectors: Vectors, context: StepContext, ids: Ids) -> Float[Tensor, ""]:
        """The bidirectional margin loss."""
        band = {name: self.knob[name] for name in ("least", "most")}
        return bidirectional_margin(*vectors["sentence"], vectors["negated"][0], **band)
