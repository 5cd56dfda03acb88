"""WhitenedCSE (Zhuo et al. 2023): views whose features are whitened are contrasted too."""

from cselab.methods import Terms, register
from cselab.methods.simcse import SimCSE


@register("whitenedcse")
class WhitenedCSE(SimCSE):
    """InfoNCE, and InfoNCE of views whose features are whitened over the batch in shuffled groups
    (the shared term "whitened"; https://arxiv.org/abs/2305.17746)."""

    class Config(SimCSE.Config):
        terms: Terms = {"nce": 1, "whitened": 1}

    paper_row = "WhitenedCSE"
