"""ESimCSE (Wu et al. 2022): words said twice, and the last batches as further negatives."""

from jaxtyping import Float
from torch import Tensor, nn

from cselab.losses import info_nce
from cselab.methods.base import Batch, Ids, Vectors, register
from cselab.methods.context import StepContext
from cselab.methods.memory import Momentum, Queue
from cselab.methods.simcse import SimCSE
from cselab.models import SentenceEncoder
from cselab.settings import Settings


@register("esimcse")
class ESimCSE(SimCSE):
    """InfoNCE with a second view in which random words are repeated, and a queue of a momentum encoder's vectors of the last 2.5
    batches as further negatives."""

    own_terms = text_terms = ("queue",)
    default_terms = ("queue",)
    augment = ("same", "repeat")
    knobs = ("momentum:0.995", "queue_batches:2.5")

    def __init__(self, encoder: SentenceEncoder, settings: Settings):
        super().__init__(encoder, settings)
        self.momentum = Momentum(self._anchors(), self.knob["momentum"])
        size = int(self.knob["queue_batches"] * settings.stage1_batch_size)
        self.last = Queue(size, encoder.backbone.config.hidden_size)

    def forward(self, batch: Batch) -> Vectors:
        first = self.texts(batch)
        return {**super().forward(batch), "momentum": self.momentum(first)[None]}

    def _anchors(self) -> nn.Sequential:
        """What maps texts to anchors: the queue's vectors have to lie in the same space."""
        return nn.Sequential(self.encoder, self.head)

    def queue(self, vectors: Vectors, context: StepContext, ids: Ids) -> Float[Tensor, ""]:
        """What is queued are earlier batches, so that a sentence never meets its own copy."""
        return info_nce(
            *vectors["sentence"], temperature=self.settings.temperature, ids=ids, more_negatives=self.last.rows()
        )

    def advance(self, vectors: Vectors) -> None:
        self.momentum.update(self._anchors())
        self.last.add(vectors["momentum"][0])
