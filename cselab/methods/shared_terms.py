"""Methods that are SimCSE with other shared terms: their papers' losses are in `cselab.methods.terms`."""

from cselab.methods.base import register
from cselab.methods.simcse import SimCSE


@register("whitenedcse")
class WhitenedCSE(SimCSE):
    """Zhuo et al. 2023: InfoNCE, and InfoNCE of views whose features are whitened over the batch in shuffled groups."""

    default_terms = ("nce", "whitened")


@register("scd")
class SCD(SimCSE):
    """Self-Contrastive Decorrelation (Klein and Nabi 2022), without negatives: a sentence's two views are pushed apart while their
    features' cross-correlation is held at the identity.

    Simplified: both views have one dropout rate, and the correlation is of the vectors themselves, not of a projection.
    """

    default_terms = ("self_contrast", "barlow:0.005")
