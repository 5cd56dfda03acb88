"""TNCSE's norm constraint on one tower (TNCSE Table 5)."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

from jaxtyping import Float
from pydantic import Field
from torch import Tensor

from cselab.losses import ictm
from cselab.methods import Schedule, StepContext, TermConfig, Terms, register, term
from cselab.methods.base import Batch, Folders, Method, SentenceOutputs
from cselab.methods.nodes import BackboneConfig, TwoViews, WithPooler
from cselab.methods.simcse import SimCSE
from cselab.models import SentenceEncoder, load_backbone, load_tokenizer


class Modulus(TermConfig):
    """The norm constraint."""

    variant: Literal["paper", "released"] = "paper"
    """"paper": the same view of both sides. "released": view a of one with view b of the other."""


@register("tncse_single")
class SingleTowerTNCSE(Method):
    """SimCSE plus `L_TN` between the two views (https://arxiv.org/abs/2503.12739, Table 5):
    `-log sim(h, h+) * ||p - p+|| / (||p|| + ||p+||)`, p the pooler's output."""

    class Config(BackboneConfig, TwoViews, WithPooler):
        temperature: float = Field(0.05, ge=1e-4, le=1e4)
        terms: Terms = {"nce": 1, "modulus": 1}
        schedule: Schedule = SimCSE.Config().schedule

    @classmethod
    def build(cls, config: Config, folders: Folders) -> "SingleTowerTNCSE":
        backbone = load_backbone(folders[0], dropout=config.dropout, pooler=config.required_pooler)
        return cls(SentenceEncoder(backbone, load_tokenizer(folders[0]), pooling="cls"), config)

    def rows(self, batch: Batch) -> SentenceOutputs:
        """With the pooler's output, (2, N, d)."""
        cls = self.encoder.embed(batch)
        pooled = self.encoder.backbone.pooler(cls[:, None]) if "modulus" in self.terms else None
        return SentenceOutputs(cls, extra=pooled)

    @classmethod
    def placed(cls, points: Sequence[Float[Tensor, "2 N d"]]) -> SentenceOutputs:
        return replace(super().placed(points), extra=points[0])

    @term(Modulus, script="modulus")
    def modulus(self, outputs: SentenceOutputs, step: StepContext) -> Float[Tensor, ""]:
        """The two views of a sentence get one direction; the pull on their lengths is strong only
        while the directions differ.

        `1/N Σᵢ −log cos(aᵢ, bᵢ) · ‖aᵢ − bᵢ‖ / (‖aᵢ‖ + ‖bᵢ‖)` (TNCSE Table 5)

        It is the twin's term with the two views as the two towers, which counts each pair twice.
        """
        h, p = outputs.sentence, outputs.extra
        if self.terms["modulus"].variant == "released":
            return ictm(h, h, p, p, variant="released") / 2
        return ictm(h, h.flip(0), p, p) / 2
