"""SCD, Self-Contrastive Decorrelation (Klein and Nabi 2022): no negatives, and two views under different dropout."""

import itertools

import torch
from jaxtyping import Float
from torch import Tensor, nn

from cselab.losses import barlow_twins
from cselab.methods.base import Batch, Ids, Vectors, register
from cselab.methods.context import StepContext
from cselab.methods.simcse import SimCSE
from cselab.models import SentenceEncoder
from cselab.models.dropout import dropout_rate
from cselab.settings import Settings


@register("scd")
class SCD(SimCSE):
    """A sentence's views under little and under much dropout are pushed apart (the shared term "self_contrast"), while each feature of
    a wide projection is held to itself in the other view, and away from the other features.

    Rates, weights and the projector are those for BERT-base; the released code divides the cosine by the temperature as well. The
    encoder runs once a rate.
    """

    own_terms = text_terms = ("decorrelation",)
    default_terms = ("self_contrast", "decorrelation:0.005")
    knobs = ("low_dropout:0.05", "high_dropout:0.15", "projection:4096", "off_diagonal:0.013")

    def __init__(self, encoder: SentenceEncoder, settings: Settings):
        super().__init__(encoder, settings)
        wide = int(self.knob["projection"])
        sizes = itertools.pairwise((encoder.backbone.config.hidden_size, wide, wide))
        hidden = [part for a, b in sizes for part in (nn.Linear(a, b, bias=False), nn.BatchNorm1d(b), nn.ReLU())]
        self.projector = nn.Sequential(*hidden, nn.Linear(wide, wide, bias=False))

    def rows(self, batch: Batch) -> dict[str, Float[Tensor, "B d"]]:
        views = []
        for view, rate in enumerate(("low_dropout", "high_dropout")):
            with dropout_rate(self.encoder, self.knob[rate]):
                views.append(super().rows(self.texts(batch, view))["sentence"])
        read = {"sentence": torch.cat(views)}
        return read | ({"projected": self.projector(read["sentence"])} if "decorrelation" in self.terms else {})

    def clean(self, batch: Batch) -> dict[str, Float[Tensor, "N d"]]:
        return super().rows(self.texts(batch))

    def decorrelation(self, vectors: Vectors, context: StepContext, ids: Ids) -> Float[Tensor, ""]:
        """Barlow Twins on the projection."""
        return barlow_twins(*vectors["projected"], off_diagonal_weight=self.knob["off_diagonal"])
