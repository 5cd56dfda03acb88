"""IS-CSE (He et al. 2023): positives smoothed over their neighbours in memory."""

import torch
from jaxtyping import Float
from pydantic import Field
from torch import Tensor

from cselab.errors import SettingsError
from cselab.losses import info_nce
from cselab.methods import SentenceOutputs, StepContext, Terms, register, term
from cselab.methods.baselines.memory import Queue
from cselab.methods.simcse import SimCSE
from cselab.models import SentenceEncoder


@register("iscse")
class ISCSE(SimCSE):
    """InfoNCE, and InfoNCE whose positive is an attention-weighted mean of the second view and its
    nearest vectors in a memory of earlier ones; the second's weight grows linearly from 0 over
    `warm_up` steps (https://arxiv.org/abs/2305.07424)."""

    class Config(SimCSE.Config):
        terms: Terms = {"nce": 1, "smoothed": 0.1}
        memory: int = Field(1024, ge=1)
        """Vectors that are kept."""
        neighbours: int = Field(8, ge=1)
        """Vectors of a group beside the view itself."""
        attention: float = 2.0
        """Factor of the cosines before the softmax."""
        warm_up: int = Field(100, ge=0)
        """Steps until the term has its whole weight."""

    def __init__(self, encoder: SentenceEncoder, config: Config):
        super().__init__(encoder, config)
        if config.neighbours > config.memory:
            raise SettingsError(
                f"neighbours={config.neighbours} of a memory of {config.memory} vectors: nothing "
                "would be smoothed; give a larger memory or fewer neighbours"
            )
        self.memory = Queue(config.memory, encoder.backbone.config.hidden_size)

    @term(script="smoothed", script_settings=("warm_up",))
    def smoothed(self, outputs: SentenceOutputs, step: StepContext) -> Float[Tensor, ""]:
        """InfoNCE whose positives are smoothed over a memory, which is empty for bare points.

        `min(1, step / warm-up) · InfoNCE(a, attention of b over a memory)` (IS-CSE)

        Nothing is smoothed while the memory holds fewer vectors than a group has neighbours.
        """
        a, b = outputs.sentence
        weight = min(1.0, step.step / max(1.0, self.settings.warm_up))
        temperature = self.settings.temperature
        return weight * info_nce(a, self.over_neighbours(b), temperature=temperature, ids=step.ids)

    def over_neighbours(self, rows: Float[Tensor, "N d"]) -> Float[Tensor, "N d"]:
        """Each row's attention over itself and its nearest vectors in memory."""
        known, count = self.memory.rows().to(rows), self.settings.neighbours
        if len(known) < count:
            return rows
        unit = torch.nn.functional.normalize
        near = (unit(rows, dim=-1) @ unit(known, dim=-1).T).topk(count, dim=1).indices
        group = torch.cat([rows[:, None], known[near]], dim=1)
        scores = torch.cosine_similarity(rows[:, None], group, dim=-1) * self.settings.attention
        return (scores.softmax(dim=1)[..., None] * group).sum(1)

    def after_step(self, outputs: SentenceOutputs) -> None:
        self.memory.add(outputs.sentence[1])
