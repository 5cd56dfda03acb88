"""Losses: pure functions on tensors, means over sentences unless said."""

from cselab.losses.dimensions import barlow_twins, cross_correlation, dimension_contrast
from cselab.losses.icnce import icnce
from cselab.losses.info_nce import info_nce
from cselab.losses.modulus import ictm, modulus_ratio, modulus_surface
from cselab.losses.off_dropout import off_dropout_info_nce, split_info_nce
from cselab.losses.triplet import triplet_info_nce

__all__ = [
    "barlow_twins",
    "cross_correlation",
    "dimension_contrast",
    "icnce",
    "ictm",
    "info_nce",
    "modulus_ratio",
    "modulus_surface",
    "off_dropout_info_nce",
    "split_info_nce",
    "triplet_info_nce",
]
