"""RankCSE (Liu et al. 2023): the order of a sentence's neighbours, between views and from teachers."""

from jaxtyping import Float
from torch import Tensor

from cselab.losses import list_mle, list_net, neighbour_lists
from cselab.methods.base import Batch, Ids, Vectors, register
from cselab.methods.context import StepContext
from cselab.methods.simcse import SimCSE


@register("rankcse")
class RankCSE(SimCSE):
    """InfoNCE, agreement of the two views' lists of neighbours (the shared term "rank"), and the lists of the teachers (ListNet, or
    ListMLE by the term "list_mle").

    Rows have `target`, the teachers' vector of the sentence. Two teachers' unit vectors side by side have the mean of their
    cosines as cosine, so a pair of teachers is one target.
    """

    own_terms = text_terms = ("list_net", "list_mle")
    default_terms = ("nce", "rank", "list_net")
    knobs = ("student_temperature:0.025", "teacher_temperature:0.05")

    def forward(self, batch: Batch) -> Vectors:
        vectors = super().forward({name: rows for name, rows in batch.items() if name != "target"})
        return {**vectors, "target": batch["target"][None]}

    def _lists(self, vectors: Vectors) -> tuple[Tensor, Tensor]:
        target = vectors["target"][0]
        return neighbour_lists(*vectors["sentence"]), neighbour_lists(target, target)

    def list_net(self, vectors: Vectors, context: StepContext, ids: Ids) -> Float[Tensor, ""]:
        """The student's softmax over neighbours follows the teachers'."""
        student, teacher = (self.knob[f"{who}_temperature"] for who in ("student", "teacher"))
        return list_net(*self._lists(vectors), student_temperature=student, teacher_temperature=teacher)

    def list_mle(self, vectors: Vectors, context: StepContext, ids: Ids) -> Float[Tensor, ""]:
        """The student gives the teachers' order its likelihood."""
        return list_mle(*self._lists(vectors), temperature=self.knob["student_temperature"])
