"""Unsupervised SimCSE (Gao et al. 2021): two dropout views of a sentence are positives, the batch is negatives."""

from collections.abc import Sequence
from pathlib import Path

from einops import rearrange
from jaxtyping import Float
from torch import Tensor, nn

from cselab.losses import info_nce
from cselab.methods.base import Batch, Ids, Method, StepContext, Vectors, register
from cselab.models import SentenceEncoder, load_backbone, load_tokenizer
from cselab.settings import Settings


@register("simcse")
class SimCSE(Method):
    """InfoNCE over the two views (Eq. 4 of the paper). Also stage 1 of TNCSE and JTCSE, one tower at a time.

    With `head="mlp_train_only"` a Linear + tanh stands on the pooled state in training only, as in SimCSE.
    """

    def __init__(self, encoder: SentenceEncoder, *, temperature: float, layout: str = "cross", head: str = "none"):
        super().__init__(encoder)
        self.temperature = temperature
        self.layout = layout
        width = encoder.backbone.config.hidden_size
        self.head = nn.Sequential(nn.Linear(width, width), nn.Tanh()) if head == "mlp_train_only" else nn.Identity()

    @classmethod
    def build(cls, settings: Settings, towers: Sequence[str | Path]) -> "SimCSE":
        backbone = load_backbone(towers[0], dropout=settings.dropout)
        encoder = SentenceEncoder(backbone, load_tokenizer(towers[0]), pooling=settings.pooling)
        return cls(
            encoder,
            temperature=settings.temperature,
            layout="all" if "info_nce_layout" in settings.released_rows else "cross",
            head=settings.head,
        )

    def forward(self, batch: Batch) -> Vectors:
        return {"sentence": rearrange(self.head(self.encoder(batch)), "(v n) d -> v n d", v=2)}

    def compare(self, vectors: Vectors, context: StepContext, ids: Ids = None) -> dict[str, Float[Tensor, ""]]:
        return {"nce": info_nce(*vectors["sentence"], temperature=self.temperature, layout=self.layout, ids=ids)}
