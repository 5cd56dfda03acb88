"""TNCSE: two towers whose [CLS] agree in direction across towers (ICNCE) and whose pooled norms agree (ICTN)."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import ClassVar

from jaxtyping import Float
from torch import Tensor, nn
from transformers import AutoConfig

from cselab.losses import icnce, ictm
from cselab.methods.base import Batch, Ids, Method, Vectors, register
from cselab.methods.context import StepContext
from cselab.models import TwinEncoder, load_backbone, load_tokenizer, remove_layer_norms
from cselab.settings import Settings

Views = Float[Tensor, "2 N d"]


@register("tncse")
class TNCSE(Method):
    """`L = sum_i L_NCE(i) + L_ICNCE + L_ICTN` over a twin (TNCSE, last equation of its method section)."""

    tower_names = ("i", "ii")
    spaces = ("cls_i", "cls_ii")
    own_terms = ("icnce", "ictm")
    default_terms = ("nce", "icnce", "ictm")
    released_dropout: ClassVar[Mapping[str, float]] = {"bert": 0.00025, "roberta": 0.0175}
    released_rate: ClassVar[float] = 1.0
    """The repository's rate of stage 2 over the paper's."""

    @classmethod
    def build(cls, settings: Settings, towers: Sequence[str | Path]) -> "TNCSE":
        reads_pooler = "ictm" in cls.wanted(settings) and settings.modulus_on == "pooler"
        pooler = settings.required_pooler if reads_pooler else "if_present"
        tower_i, tower_ii = (
            load_backbone(tower, dropout=cls.dropout(settings, tower), pooler=pooler) for tower in towers
        )
        for tower in (tower_i, tower_ii):
            remove_layer_norms(tower, settings.layer_norms_removed)
        tokenizer = load_tokenizer(towers[0])
        return cls(
            TwinEncoder(tower_i, tower_ii, tokenizer=tokenizer, **cls.cross_attention(settings, tower_i)), settings
        )

    @classmethod
    def dropout(cls, settings: Settings, tower: str | Path) -> float:
        """Stage 2's dropout: the settings', or with the row "stage2_dropout" the repository's for this kind of backbone."""
        if settings.stage2_dropout is not None:
            return settings.stage2_dropout
        if "stage2_dropout" in settings.released_rows and cls.released_dropout:
            kind = AutoConfig.from_pretrained(tower, trust_remote_code=False).model_type
            return cls.released_dropout.get(kind, settings.dropout)
        return settings.dropout

    @staticmethod
    def cross_attention(settings: Settings, tower: nn.Module) -> dict:
        """The twin's cross-attention options: TNCSE has no cross-attention layers."""
        return {}

    def rows(self, batch: Batch) -> dict[str, Float[Tensor, "B d"]]:
        output = self.encoder(batch["input_ids"], batch["attention_mask"])._asdict()
        reads_pooler = "ictm" in self.terms and self.settings.modulus_on == "pooler"
        read = {"cls"} | ({"pooled"} if reads_pooler else set()) | ({"cross"} if "icnce" in self.terms else set())
        return {name: rows for name, rows in output.items() if rows is not None and name.partition("_")[0] in read}

    def icnce(self, vectors: Vectors, context: StepContext, ids: Ids) -> Float[Tensor, ""]:
        """InfoNCE across the towers, tower I as anchor."""
        return self.across(vectors["cls_i"], vectors["cls_ii"], ids)

    def ictm(self, vectors: Vectors, context: StepContext, ids: Ids) -> Float[Tensor, ""]:
        """The tensor-norm (TNCSE) or tensor-modulus (JTCSE) constraint: one loss, two names."""
        variant = "released" if "modulus" in self.settings.released_rows else "paper"
        measured = "pooled" if self.settings.modulus_on == "pooler" else "cls"
        read = (vectors[name] for name in ("cls_i", "cls_ii", f"{measured}_i", f"{measured}_ii"))
        return ictm(*read, variant=variant)

    def across(self, anchors: Views, candidates: Views, ids: Ids) -> Float[Tensor, ""]:
        """ICNCE of two streams, in the variant of the settings."""
        variant = "released" if "icnce_candidates" in self.settings.released_rows else "paper"
        return icnce(anchors, candidates, temperature=self.settings.temperature, variant=variant, ids=ids)
