"""`D`: an ensemble's vectors learned by one fresh tower (EDFSE; TNCSE and JTCSE "+D", "+UC D")."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import ClassVar

import torch.nn.functional as F
from jaxtyping import Float
from pydantic import Field
from torch import Tensor

from cselab.methods import AnyMethod, Schedule, StepContext, Terms, register, term
from cselab.methods.base import Batch, SentenceOutputs
from cselab.methods.nodes import BackboneConfig, Role, WithPooling
from cselab.methods.simcse import SimCSE
from cselab.methods.sums import Sum
from cselab.models.encode import Encoder


@register("distilled")
class Distilled(SimCSE):
    """Mean squared error between the student's vector of a sentence and the teacher's, a mean over
    sentences and dimensions (TNCSE, https://arxiv.org/abs/2503.12739, "+D").

    Rows have `target`, the teacher's vector of the sentence (`cselab.data.targets.with_targets`):
    computed once, so the teacher may be any encoder, with any tokenizer, and need not be in memory.
    The student reads each sentence once, with dropout; the teacher has none.
    """

    class Config(BackboneConfig, WithPooling):
        role: ClassVar[Role] = "student"
        carried: ClassVar[tuple[str, ...]] = ("seed", "schedule")
        teacher: AnyMethod = Field(default_factory=Sum.Config)
        terms: Terms = {"mse": 1}
        schedule: Schedule = Schedule(
            batch_size=64,  # TNCSE, JTCSE: 64 (RoBERTa 256 and 128)
            learning_rate=1e-5,  # TNCSE supplement, Table I-1
            max_length=32,
            eval_every=100,
            decay="constant",
            weight_decay=0.01,
        )

    views = 1
    keeps_apart = False

    @classmethod
    def targets(cls, teachers: Sequence[Encoder]) -> Callable[[list[str]], Tensor]:
        return teachers[0].encode

    def forward(self, batch: Batch) -> SentenceOutputs:
        """Add the teacher's vector of each sentence, (1, N, D)."""
        return replace(super().forward(batch), extra=batch["target"][None])

    @term(reads_text=True)
    def mse(self, outputs: SentenceOutputs, step: StepContext) -> Float[Tensor, ""]:
        """A mean over sentences and dimensions."""
        return F.mse_loss(outputs.sentence, outputs.extra)
