"""Supervised SimCSE (Gao et al. 2021, Eq. 5): a premise, what follows from it, and what contradicts it."""

from jaxtyping import Float
from torch import Tensor

from cselab.losses import triplet_info_nce
from cselab.methods.base import Ids, Vectors, register
from cselab.methods.context import StepContext
from cselab.methods.simcse import SimCSE


@register("simcse_supervised")
class SupervisedSimCSE(SimCSE):
    """Each premise finds its entailed sentence among all entailed and all contradicting ones of the batch.

    Rows are triplets: `input_ids`, `input_ids_b` (entailed) and `input_ids_c` (contradicting). Shared terms read the first two.
    """

    views = 3
    own_terms = ("triplet",)
    default_terms = ("triplet",)

    def triplet(self, vectors: Vectors, context: StepContext, ids: Ids) -> Float[Tensor, ""]:
        """Eq. 5 with one hard negative a premise."""
        return triplet_info_nce(*vectors["sentence"], temperature=self.settings.temperature)
