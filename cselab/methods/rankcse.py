"""RankCSE (Liu et al. 2023): the order of a sentence's neighbours, between views and from
teachers."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float
from pydantic import Field
from torch import Tensor

from cselab.losses import list_mle, list_net, neighbour_lists
from cselab.methods.base import Batch, SentenceOutputs
from cselab.methods.config import AnyMethod
from cselab.methods.context import StepContext
from cselab.methods.registry import register
from cselab.methods.simcse import SimCSE
from cselab.methods.terms import TermConfig, Terms, term
from cselab.methods.towers import twin_towers
from cselab.models.encode import Encoder


@dataclass(frozen=True, kw_only=True)
class TaughtOutputs(SentenceOutputs):
    """Also the teachers' vector of each sentence, (1, N, D)."""

    target: Tensor


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

    The teachers are the two SimCSE towers of a twin (the paper's are SimCSE base and large). Two
    teachers' unit vectors side by side have the mean of their cosines as cosine, so a pair of
    teachers is one target.
    """

    class Config(SimCSE.Config):
        """RankCSE's settings; the schedule is SimCSE's."""

        terms: Terms = {"nce": 1, "rank": 1, "list_net": 1}
        teachers: tuple[AnyMethod, ...] = Field(default_factory=twin_towers, min_length=1)

    paper_row = "RankCSE"

    @classmethod
    def targets(cls, teachers: Sequence[Encoder]) -> Callable[[list[str]], Tensor]:
        unit = torch.nn.functional.normalize
        return lambda texts: torch.cat([unit(t.encode(texts), dim=1) for t in teachers], dim=1)

    def forward(self, batch: Batch) -> TaughtOutputs:
        outputs = super().forward({name: x for name, x in batch.items() if name != "target"})
        return TaughtOutputs(**outputs.tensors(), target=batch["target"][None])

    def _lists(self, outputs: TaughtOutputs) -> tuple[Tensor, Tensor]:
        target = outputs.target[0]
        return neighbour_lists(*outputs.sentence), neighbour_lists(target, target)

    @term(ListNet, reads_text=True)
    def list_net(self, outputs: TaughtOutputs, step: StepContext) -> Float[Tensor, ""]:
        """The student's softmax over neighbours follows the teachers'."""
        config = self.terms["list_net"]
        return list_net(
            *self._lists(outputs),
            student_temperature=config.student_temperature,
            teacher_temperature=config.teacher_temperature,
        )

    @term(ListMLE, reads_text=True)
    def list_mle(self, outputs: TaughtOutputs, step: StepContext) -> Float[Tensor, ""]:
        """The student gives the teachers' order its likelihood."""
        temperature = self.terms["list_mle"].student_temperature
        return list_mle(*self._lists(outputs), temperature=temperature)
