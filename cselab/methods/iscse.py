"""IS-CSE (He et al. 2023): positives smoothed over their neighbours in memory."""

import torch
from jaxtyping import Float
from torch import Tensor

from cselab.losses import info_nce
from cselab.methods.base import Ids, Vectors, register
from cselab.methods.context import StepContext
from cselab.methods.memory import Queue
from cselab.methods.simcse import SimCSE
from cselab.models import SentenceEncoder
from cselab.settings import Settings


@register("iscse")
class ISCSE(SimCSE):
    """InfoNCE, and InfoNCE whose positive is an attention-weighted mean of the second view and its nearest vectors in a memory of
    earlier ones; the second's weight grows linearly from 0 over `warm_up` steps."""

    own_terms = ("smoothed",)
    default_terms = ("nce", "smoothed:0.1")
    knobs = ("memory:1024", "neighbours:8", "attention:2", "warm_up:100")

    def __init__(self, encoder: SentenceEncoder, settings: Settings):
        super().__init__(encoder, settings)
        self.memory = Queue(int(self.knob["memory"]), encoder.backbone.config.hidden_size)

    def smoothed(self, vectors: Vectors, context: StepContext, ids: Ids) -> Float[Tensor, ""]:
        """Nothing is smoothed while the memory holds fewer vectors than a group has neighbours."""
        a, b = vectors["sentence"]
        weight = min(1.0, context.step / max(1.0, self.knob["warm_up"]))
        return weight * info_nce(a, self.over_neighbours(b), temperature=self.settings.temperature, ids=ids)

    def over_neighbours(self, rows: Float[Tensor, "N d"]) -> Float[Tensor, "N d"]:
        """Each row's attention over itself and its nearest vectors in memory; scores are cosines times the knob `attention`."""
        known, count = self.memory.rows().to(rows), int(self.knob["neighbours"])
        if len(known) < count:
            return rows
        unit = torch.nn.functional.normalize
        near = (unit(rows, dim=-1) @ unit(known, dim=-1).T).topk(count, dim=1).indices
        group = torch.cat([rows[:, None], known[near]], dim=1)
        scores = torch.cosine_similarity(rows[:, None], group, dim=-1) * self.knob["attention"]
        return (scores.softmax(dim=1)[..., None] * group).sum(1)

    def advance(self, vectors: Vectors) -> None:
        self.memory.add(vectors["sentence"][1])
