"""Supervised SimCSE (Gao et al. 2021): a premise, what follows from it, and what contradicts it."""

from typing import ClassVar

from jaxtyping import Float
from torch import Tensor

from cselab.losses import triplet_info_nce
from cselab.methods import Schedule, SentenceOutputs, StepContext, Terms, register, term
from cselab.methods.nodes import Role
from cselab.methods.simcse import Contrastive, SimCSE


@register("simcse_supervised")
class SupervisedSimCSE(SimCSE):
    """Each premise finds its entailed sentence among all entailed and all contradicting ones of the
    batch (https://arxiv.org/abs/2104.08821, Eq. 5).

    Rows are triplets: `input_ids`, `input_ids_b` (entailed) and `input_ids_c` (contradicting).
    Shared terms read the first two.
    """

    class Config(Contrastive):
        role: ClassVar[Role] = "triplets"
        terms: Terms = {"triplet": 1}
        schedule: Schedule = Schedule(
            epochs=3,  # of SimCSE's 275,601 triplets
            batch_size=64,  # 512 in the paper
            learning_rate=5e-5,  # Table D.1
            max_length=64,
            eval_every=100,
            max_grad_norm=1.0,
        )

    views = 3
    reads = "triplets"

    @term
    def triplet(self, outputs: SentenceOutputs, step: StepContext) -> Float[Tensor, ""]:
        """Eq. 5 with one hard negative a premise."""
        return triplet_info_nce(*outputs.sentence, temperature=self.settings.temperature)
