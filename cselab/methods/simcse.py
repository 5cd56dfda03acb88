"""Unsupervised SimCSE (Gao et al. 2021): two dropout views of a sentence are positives, the batch is negatives."""

from collections.abc import Sequence
from pathlib import Path

from jaxtyping import Float
from torch import Tensor, nn

from cselab.methods.base import Batch, Method, register
from cselab.models import SentenceEncoder, load_backbone, load_tokenizer
from cselab.settings import Settings


@register("simcse")
class SimCSE(Method):
    """InfoNCE over the two views (Eq. 4 of the paper). Also stage 1 of TNCSE and JTCSE, one tower at a time.

    With `head="mlp_train_only"` a Linear + tanh stands on the pooled state in training only, as in SimCSE.
    """

    def __init__(self, encoder: SentenceEncoder, settings: Settings):
        super().__init__(encoder, settings)
        width = encoder.backbone.config.hidden_size
        mlp = settings.head == "mlp_train_only"
        self.head = nn.Sequential(nn.Linear(width, width), nn.Tanh()) if mlp else nn.Identity()

    @classmethod
    def build(cls, settings: Settings, towers: Sequence[str | Path]) -> "SimCSE":
        pooler = settings.required_pooler if settings.pooling == "pooler" else "if_present"
        backbone = load_backbone(towers[0], dropout=settings.dropout, pooler=pooler)
        return cls(SentenceEncoder(backbone, load_tokenizer(towers[0]), pooling=settings.pooling), settings)

    def rows(self, batch: Batch) -> dict[str, Float[Tensor, "B d"]]:
        return {"sentence": self.head(self.encoder(batch))}
