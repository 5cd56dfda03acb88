"""RankCSE (Liu et al. 2023): the order of neighbours, between views and from teachers."""

from collections.abc import Callable, Sequence
from dataclasses import replace

import torch
import torch.nn.functional as F
from jaxtyping import Float
from pydantic import Field
from torch import Tensor

from cselab.losses import neighbour_lists
from cselab.losses.inputs import check_shapes, check_temperature
from cselab.methods import AnyMethod, StepContext, TermConfig, Terms, register, term
from cselab.methods.base import Batch, SentenceOutputs
from cselab.methods.simcse import SimCSE, twin_towers
from cselab.models.encode import Encoder

Scores = Float[Tensor, "N M"]


def list_net(
    student: Scores, teacher: Scores, *, student_temperature: float, teacher_temperature: float
) -> Float[Tensor, ""]:
    """ListNet: cross-entropy from the teacher's softmax over a list to the student's, a mean over
    lists (RankCSE, https://arxiv.org/abs/2305.16726; ListNet,
    https://doi.org/10.1145/1273496.1273513). Scores are as from `neighbour_lists`."""
    for temperature in (student_temperature, teacher_temperature):
        check_temperature(temperature)
    check_shapes("N M", student=student, teacher=teacher)
    target = F.softmax(teacher / teacher_temperature, dim=1)
    return F.cross_entropy(student / student_temperature, target)


def list_mle(student: Scores, teacher: Scores, *, temperature: float) -> Float[Tensor, ""]:
    """ListMLE: `-log P(teacher's order | student's scores)` under the Plackett-Luce model, a mean
    over lists (RankCSE, https://arxiv.org/abs/2305.16726; ListMLE,
    https://doi.org/10.1145/1390156.1390306)."""
    check_temperature(temperature)
    check_shapes("N M", student=student, teacher=teacher)
    ordered = (student / temperature).gather(1, teacher.argsort(dim=1, descending=True))
    remaining = ordered.flip(1).logcumsumexp(dim=1).flip(1)
    return (remaining - ordered).sum(dim=1).mean()


class ListMLE(TermConfig):
    """The student's temperature."""

    student_temperature: float = Field(0.025, gt=0)
    """RankCSE section 4.1."""


class ListNet(ListMLE):
    """The two temperatures."""

    teacher_temperature: float = Field(0.05, gt=0)
    """RankCSE section 4.1."""


@register("rankcse")
class RankCSE(SimCSE):
    """InfoNCE, agreement of the two views' lists of neighbours (the shared term "rank"), and the
    lists of the teachers (ListNet, or ListMLE by the term "list_mle";
    https://arxiv.org/abs/2305.16726).

    The teachers are the two SimCSE towers of a twin. The paper's are finished checkpoints, SimCSE
    base and large or DiffCSE (grids/paper). Two teachers' unit vectors side by side have the mean
    of their cosines as cosine, so a pair of teachers is one target.
    """

    class Config(SimCSE.Config):
        terms: Terms = {"nce": 1, "rank": 1, "list_net": 1}
        teachers: tuple[AnyMethod, ...] = Field(default_factory=twin_towers, min_length=1)

    paper_row = "RankCSE"

    @classmethod
    def targets(cls, teachers: Sequence[Encoder]) -> Callable[[list[str]], Tensor]:
        return lambda texts: torch.cat([F.normalize(t.encode(texts)) for t in teachers], dim=1)

    def forward(self, batch: Batch) -> SentenceOutputs:
        """Add the teachers' vector of each sentence, (1, N, D)."""
        return replace(super().forward(batch), extra=batch["target"][None])

    def _lists(self, outputs: SentenceOutputs) -> tuple[Tensor, Tensor]:
        target = outputs.extra[0]
        return neighbour_lists(*outputs.sentence), neighbour_lists(target, target)

    @term(ListNet, reads_text=True)
    def list_net(self, outputs: SentenceOutputs, step: StepContext) -> Float[Tensor, ""]:
        """The student's softmax over neighbours follows the teachers'."""
        config = self.terms["list_net"]
        return list_net(*self._lists(outputs), **config.model_dump(exclude={"weight"}))

    @term(ListMLE, reads_text=True)
    def list_mle(self, outputs: SentenceOutputs, step: StepContext) -> Float[Tensor, ""]:
        """The student gives the teachers' order its likelihood."""
        temperature = self.terms["list_mle"].student_temperature
        return list_mle(*self._lists(outputs), temperature=temperature)
