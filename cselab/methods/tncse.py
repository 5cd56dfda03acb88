"""TNCSE: two towers whose [CLS] agree in direction across towers (ICNCE) and whose pooled norms agree (ICTN)."""

from collections.abc import Sequence
from pathlib import Path

from einops import rearrange
from jaxtyping import Float
from torch import Tensor, nn

from cselab.losses import icnce, ictm, info_nce
from cselab.methods.base import Batch, Ids, Method, StepContext, Vectors, register
from cselab.models import TwinEncoder, load_backbone, load_tokenizer
from cselab.settings import Settings

Views = Float[Tensor, "2 N d"]


@register("tncse")
class TNCSE(Method):
    """`L = sum_i L_NCE(i) + L_ICNCE + L_ICTN` over a twin (TNCSE, last equation of its method section).

    `terms` names the ones that are summed: any of "nce", "icnce", "ictm" (an ablation is a tuple of names).
    `released` holds the ledger rows in which the released code is followed instead of the paper.
    """

    tower_names = ("i", "ii")

    def __init__(
        self,
        encoder: TwinEncoder,
        *,
        temperature: float,
        terms: Sequence[str] = ("nce", "icnce", "ictm"),
        released: frozenset[str] = frozenset(),
    ):
        super().__init__(encoder)
        self.temperature = temperature
        self.terms = tuple(terms)
        self.released = released

    @classmethod
    def build(cls, settings: Settings, towers: Sequence[str | Path]) -> "TNCSE":
        pooler = "required" if "ictm" in settings.terms else "if_present"
        tower_i, tower_ii = (load_backbone(tower, dropout=settings.dropout, pooler=pooler) for tower in towers)
        tokenizer = load_tokenizer(towers[0])
        encoder = TwinEncoder(tower_i, tower_ii, tokenizer=tokenizer, **cls.cross_attention(settings, tower_i))
        return cls(encoder, temperature=settings.temperature, terms=settings.terms, released=settings.released_rows)

    @staticmethod
    def cross_attention(settings: Settings, tower: nn.Module) -> dict:
        """The twin's cross-attention options: TNCSE has no cross-attention layers."""
        return {}

    def forward(self, batch: Batch) -> Vectors:
        output = self.encoder(batch["input_ids"], batch["attention_mask"])._asdict()
        reader = {"cls": self.terms, "pooled": ("ictm",), "cross": ("icnce",)}
        return {
            name: rearrange(rows, "(v n) d -> v n d", v=2)
            for name, rows in output.items()
            if rows is not None and set(reader[name.partition("_")[0]]) & set(self.terms)
        }

    def compare(self, vectors: Vectors, context: StepContext, ids: Ids = None) -> dict[str, Float[Tensor, ""]]:
        compute = {"nce": self.nce, "icnce": self.icnce, "ictm": self.ictm}
        return {term: compute[term](vectors, context, ids) for term in self.terms}

    def nce(self, vectors: Vectors, context: StepContext, ids: Ids) -> Float[Tensor, ""]:
        """SimCSE's loss within each tower, summed over the two."""
        layout = "all" if "info_nce_layout" in self.released else "cross"
        options = {"temperature": self.temperature, "layout": layout, "ids": ids}
        return sum(info_nce(*vectors[cls], **options) for cls in ("cls_i", "cls_ii"))

    def icnce(self, vectors: Vectors, context: StepContext, ids: Ids) -> Float[Tensor, ""]:
        """InfoNCE across the towers, tower I as anchor."""
        return self.across(vectors["cls_i"], vectors["cls_ii"], ids)

    def ictm(self, vectors: Vectors, context: StepContext, ids: Ids) -> Float[Tensor, ""]:
        """The tensor-norm (TNCSE) or tensor-modulus (JTCSE) constraint: one loss, two names."""
        variant = "released" if "modulus" in self.released else "paper"
        read = (vectors[name] for name in ("cls_i", "cls_ii", "pooled_i", "pooled_ii"))
        return ictm(*read, variant=variant)

    def across(self, anchors: Views, candidates: Views, ids: Ids) -> Float[Tensor, ""]:
        variant = "released" if "icnce_candidates" in self.released else "paper"
        return icnce(anchors, candidates, temperature=self.temperature, variant=variant, ids=ids)
