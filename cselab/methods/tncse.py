"""TNCSE: two towers whose [CLS] agree in direction across towers (ICNCE) and whose pooled norms agree (ICTN)."""

from collections.abc import Sequence
from pathlib import Path

from einops import rearrange
from jaxtyping import Float, Int
from torch import Tensor, nn

from cselab.losses import icnce, ictm, info_nce
from cselab.methods.base import Batch, Method, StepContext, register
from cselab.models import TwinEncoder, TwinOutput, load_backbone, load_tokenizer
from cselab.settings import Settings

Views = Float[Tensor, "2 N d"]
Ids = Int[Tensor, " N"] | None


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

    def losses(self, batch: Batch, context: StepContext) -> dict[str, Float[Tensor, ""]]:
        output = self.encoder(batch["input_ids"], batch["attention_mask"])
        views = TwinOutput(*(None if x is None else rearrange(x, "(v n) d -> v n d", v=2) for x in output))
        compute = {"nce": self.nce, "icnce": self.icnce, "ictm": self.ictm}
        return {term: compute[term](views, context, batch.get("text_hash")) for term in self.terms}

    def nce(self, views: TwinOutput, context: StepContext, ids: Ids) -> Float[Tensor, ""]:
        """SimCSE's loss within each tower, summed over the two."""
        layout = "all" if "info_nce_layout" in self.released else "cross"
        options = {"temperature": self.temperature, "layout": layout, "ids": ids}
        return sum(info_nce(*cls, **options) for cls in (views.cls_i, views.cls_ii))

    def icnce(self, views: TwinOutput, context: StepContext, ids: Ids) -> Float[Tensor, ""]:
        """InfoNCE across the towers, tower I as anchor."""
        return self.across(views.cls_i, views.cls_ii, ids)

    def ictm(self, views: TwinOutput, context: StepContext, ids: Ids) -> Float[Tensor, ""]:
        """The tensor-norm (TNCSE) or tensor-modulus (JTCSE) constraint: one loss, two names."""
        variant = "released" if "modulus" in self.released else "paper"
        return ictm(views.cls_i, views.cls_ii, views.pooled_i, views.pooled_ii, variant=variant)

    def across(self, anchors: Views, candidates: Views, ids: Ids) -> Float[Tensor, ""]:
        variant = "released" if "icnce_candidates" in self.released else "paper"
        return icnce(anchors, candidates, temperature=self.temperature, variant=variant, ids=ids)
