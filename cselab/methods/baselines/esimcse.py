"""ESimCSE (Wu et al. 2022): words said twice, and the last batches as further negatives."""

from dataclasses import replace

from jaxtyping import Float
from pydantic import Field
from torch import Tensor

from cselab.losses import info_nce
from cselab.methods import Batch, SentenceOutputs, StepContext, Terms, register, term
from cselab.methods.baselines.memory import Momentum, Projected, Queue
from cselab.methods.nodes import Names
from cselab.methods.simcse import SimCSE
from cselab.models import SentenceEncoder


@register("esimcse")
class ESimCSE(SimCSE):
    """InfoNCE with a second view in which random words are repeated, and a queue of a momentum
    encoder's vectors of the last 2.5 batches as further negatives
    (https://arxiv.org/abs/2109.04380)."""

    class Config(SimCSE.Config):
        terms: Terms = {"queue": 1}
        augment: Names = ("same", "repeat")
        momentum: float = Field(0.995, ge=0, le=1)
        """ESimCSE section 4.2."""
        queue_batches: float = Field(2.5, gt=0)
        """ESimCSE section 4.2."""

    paper_row = "ESimCSE"

    def __init__(self, encoder: SentenceEncoder, config: Config):
        super().__init__(encoder, config)
        self.momentum = Momentum(self._anchors(), config.momentum)
        size = max(1, int(config.queue_batches * config.schedule.batch_size))
        self.last = Queue(size, encoder.backbone.config.hidden_size)

    def forward(self, batch: Batch) -> SentenceOutputs:
        """Add the momentum encoder's vectors of the first views, (1, N, d)."""
        outputs = super().forward(batch)
        return replace(outputs, extra=self.momentum(self.texts(batch))[None])

    def _anchors(self) -> Projected:
        """The map from texts to anchors: the queue's vectors have to lie in the same space."""
        return Projected(self.encoder, self.head)

    @term(reads_text=True)
    def queue(self, outputs: SentenceOutputs, step: StepContext) -> Float[Tensor, ""]:
        """InfoNCE with earlier batches as negatives; a sentence never meets its own copy."""
        options = {"temperature": self.settings.temperature, "ids": step.ids}
        return info_nce(*outputs.sentence, more_negatives=self.last.rows(), **options)

    def after_step(self, outputs: SentenceOutputs) -> None:
        self.momentum.update(self._anchors())
        self.last.add(outputs.extra[0])
