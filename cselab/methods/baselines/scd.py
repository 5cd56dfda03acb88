"""SCD, Self-Contrastive Decorrelation (Klein and Nabi 2022): no negatives."""

import torch
from jaxtyping import Float
from pydantic import Field
from torch import Tensor, nn

from cselab.losses import barlow_twins
from cselab.methods import Batch, SentenceOutputs, StepContext, TermConfig, Terms, register, term
from cselab.methods.simcse import SimCSE
from cselab.models import SentenceEncoder
from cselab.models.dropout import dropout_rate


class Decorrelation(TermConfig):
    """Barlow Twins on the projection."""

    weight: float = Field(0.005, ge=0)
    off_diagonal: float = 0.013


@register("scd")
class SCD(SimCSE):
    """A sentence's views under little and under much dropout are pushed apart (the shared term
    "self_contrast"), while each feature of a wide projection is held to itself in the other view,
    and away from the other features (https://arxiv.org/abs/2203.07847).

    Rates, weights and the projector are those for BERT-base; the released code divides the cosine
    by the temperature as well. The encoder runs once a rate.
    """

    class Config(SimCSE.Config):
        terms: Terms = {"self_contrast": 1, "decorrelation": 0.005}
        low_dropout: float = Field(0.05, ge=0, lt=1)
        high_dropout: float = Field(0.15, ge=0, lt=1)
        projection: int = Field(4096, ge=1)
        """Width of the projector's layers."""

    paper_row = "SCD-BERT"

    def __init__(self, encoder: SentenceEncoder, config: Config):
        super().__init__(encoder, config)
        wide = config.projection
        hidden: list[nn.Module] = []
        for width in (encoder.backbone.config.hidden_size, wide):
            hidden += [nn.Linear(width, wide, bias=False), nn.BatchNorm1d(wide), nn.ReLU()]
        self.projector = nn.Sequential(*hidden, nn.Linear(wide, wide, bias=False))

    def rows(self, batch: Batch) -> SentenceOutputs:
        """Vectors and their wide projection, (2, N, D)."""
        views = []
        for view, rate in enumerate((self.settings.low_dropout, self.settings.high_dropout)):
            with dropout_rate(self.encoder, rate):
                views.append(self.project(self.texts(batch, view)))
        vectors = torch.cat(views)
        wide = self.projector(vectors) if "decorrelation" in self.terms else None
        return SentenceOutputs(vectors, extra=wide)

    def clean(self, batch: Batch) -> SentenceOutputs:
        return super().rows(self.texts(batch))

    @term(Decorrelation, reads_text=True)
    def decorrelation(self, outputs: SentenceOutputs, step: StepContext) -> Float[Tensor, ""]:
        """Barlow Twins on the projection."""
        off_diagonal = self.terms["decorrelation"].off_diagonal
        return barlow_twins(*outputs.extra, off_diagonal_weight=off_diagonal)
