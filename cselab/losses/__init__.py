"""Losses: pure functions on tensors; means over sentences unless documented otherwise."""

from cselab.losses.dimensions import barlow_twins, cross_correlation, dimension_contrast
from cselab.losses.group_whitening import group_whiten
from cselab.losses.icnce import icnce
from cselab.losses.info_nce import info_nce
from cselab.losses.margins import arc_con
from cselab.losses.modulus import ictm, modulus_ratio, modulus_surface
from cselab.losses.off_dropout import off_dropout_info_nce, split_info_nce
from cselab.losses.ranking import neighbour_lists, rank_consistency
from cselab.losses.triplet import triplet_info_nce

__all__ = [
    "arc_con",
    "barlow_twins",
    "cross_correlation",
    "dimension_contrast",
    "group_whiten",
    "icnce",
    "ictm",
    "info_nce",
    "modulus_ratio",
    "modulus_surface",
    "neighbour_lists",
    "off_dropout_info_nce",
    "rank_consistency",
    "split_info_nce",
    "triplet_info_nce",
]
