"""ConSERT (Yan et al. 2021): the two views are a shuffled and a cut text."""

from jaxtyping import Float
from torch import Tensor

from cselab.losses import info_nce
from cselab.methods import SentenceOutputs, StepContext, TermConfig, Terms, register, term
from cselab.methods.nodes import Names, Pooling
from cselab.methods.simcse import SimCSE


class NTXent(TermConfig):
    """InfoNCE in which both views' other sentences are negatives."""

    temperature: float = 0.1
    """ConSERT section 4.1."""


@register("consert")
class ConSERT(SimCSE):
    """NT-Xent at temperature 0.1 between a view with its words in random order and one with 15 % of
    them cut, mean pooling (https://arxiv.org/abs/2105.11741).

    Simplified: augmentations are of tokens, before the embedding layer; its feature cutoff is left
    out, and dropout is the encoder's own, in all layers.
    """

    class Config(SimCSE.Config):
        terms: Terms = {"nt_xent": 1}
        augment: Names = ("shuffle", "cutoff")
        pooling: Pooling = "mean"

    paper_row = "ConSERT"

    @term(NTXent, script="nt_xent")
    def nt_xent(self, outputs: SentenceOutputs, step: StepContext) -> Float[Tensor, ""]:
        """InfoNCE in which the other sentences' vectors of both views are negatives.

        `InfoNCE over all 2N views but the row itself, at its own temperature` (ConSERT)
        """
        temperature = self.terms["nt_xent"].temperature
        return info_nce(*outputs.sentence, temperature=temperature, layout="all", ids=step.ids)
