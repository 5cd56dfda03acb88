"""`D`: an ensemble's vectors learned by one fresh tower (EDFSE; TNCSE and JTCSE "+D", "+UC D")."""

import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

from cselab.methods.base import Batch, Ids, Vectors, register
from cselab.methods.context import StepContext
from cselab.methods.simcse import SimCSE


@register("distillation")
class Distillation(SimCSE):
    """Mean squared error between the student's vector of a sentence and the teacher's, a mean over sentences and dimensions.

    Rows have `target`, the teacher's vector of the sentence (`cselab.data.targets.with_targets`): computed once, so the
    teacher may be any encoder, with any tokenizer, and need not be in memory. The student reads each sentence once.
    """

    views = 1
    keeps_apart = False
    own_terms = ("mse",)
    default_terms = ("mse",)

    def forward(self, batch: Batch) -> Vectors:
        vectors = super().forward({name: rows for name, rows in batch.items() if name != "target"})
        return {**vectors, "target": batch["target"][None]}

    def mse(self, vectors: Vectors, context: StepContext, ids: Ids) -> Float[Tensor, ""]:
        """The student has dropout, the teacher had none."""
        return F.mse_loss(vectors["sentence"], vectors["target"])
