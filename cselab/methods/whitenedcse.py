"""WhitenedCSE (Zhuo et al. 2023): views whose features are whitened over the batch are contrasted too."""

from cselab.methods.base import register
from cselab.methods.simcse import SimCSE


@register("whitenedcse")
class WhitenedCSE(SimCSE):
    """InfoNCE, and InfoNCE of views whose features are whitened over the batch in shuffled groups (the shared term "whitened")."""

    default_terms = ("nce", "whitened")
