"""ConSERT (Yan et al. 2021): the two views are a shuffled and a cut text."""

from collections.abc import Sequence
from pathlib import Path

from jaxtyping import Float
from torch import Tensor

from cselab.losses import info_nce
from cselab.methods.base import Ids, Vectors, register
from cselab.methods.context import StepContext
from cselab.methods.simcse import SimCSE
from cselab.settings import Settings


@register("consert")
class ConSERT(SimCSE):
    """NT-Xent at temperature 0.1 between a view with its words in random order and one with 15 % of them cut, mean pooling.

    Simplified: augmentations are of tokens, before the embedding layer; its feature cutoff is left out, and dropout is the
    encoder's own, in all layers.
    """

    own_terms = ("nt_xent",)
    default_terms = ("nt_xent",)
    augment = ("shuffle", "cutoff")
    knobs = ("nt_xent_temperature:0.1",)

    @classmethod
    def build(cls, settings: Settings, towers: Sequence[str | Path]) -> "ConSERT":
        return super().build(settings.model_copy(update={"pooling": "mean"}), towers)

    def nt_xent(self, vectors: Vectors, context: StepContext, ids: Ids) -> Float[Tensor, ""]:
        """Both views' other sentences are negatives."""
        return info_nce(*vectors["sentence"], temperature=self.knob["nt_xent_temperature"], layout="all", ids=ids)
