"""TNCSE's norm constraint on one tower (TNCSE Table 5)."""

from collections.abc import Sequence
from pathlib import Path

from jaxtyping import Float
from torch import Tensor

from cselab.losses import ictm
from cselab.methods.base import Batch, Ids, Method, Vectors, register
from cselab.methods.context import StepContext
from cselab.models import SentenceEncoder, load_backbone, load_tokenizer
from cselab.settings import Settings


@register("tncse_single")
class SingleTowerTNCSE(Method):
    """SimCSE plus `L_TN` between the two views: `-log sim(h, h+) * ||p - p+|| / (||p|| + ||p+||)`, p the pooler's output."""

    own_terms = ("modulus",)
    default_terms = ("nce", "modulus")

    @classmethod
    def build(cls, settings: Settings, towers: Sequence[str | Path]) -> "SingleTowerTNCSE":
        backbone = load_backbone(towers[0], dropout=settings.dropout, pooler=settings.required_pooler)
        return cls(SentenceEncoder(backbone, load_tokenizer(towers[0]), pooling="cls"), settings)

    def rows(self, batch: Batch) -> dict[str, Float[Tensor, "B d"]]:
        output = self.encoder.backbone(input_ids=batch["input_ids"], attention_mask=batch["attention_mask"])
        read = {"sentence": output.last_hidden_state[:, 0]}
        return read | ({"pooled": output.pooler_output} if "modulus" in self.terms else {})

    def modulus(self, vectors: Vectors, context: StepContext, ids: Ids) -> Float[Tensor, ""]:
        """The twin's term with the two views in the place of the two towers, which counts each pair twice."""
        h, p = vectors["sentence"], vectors["pooled"]
        if "modulus" in self.settings.released_rows:  # compares view a of one tower with view b of the other
            return ictm(h, h, p, p, variant="released") / 2
        return ictm(h, h.flip(0), p, p) / 2  # compares the same view of both
