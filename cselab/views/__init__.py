"""Figures (plotly). Every view has a static form, so that a headless run and an exported page show the same."""

from cselab.views.figures import (
    alignment_uniformity,
    cosine_by_rating,
    line_chart,
    modulus_surface_figure,
    overlap_histogram,
    score_bars,
    score_heatmap,
    training_curves,
    violins,
)
from cselab.views.theme import PALETTE, use_theme

__all__ = [
    "PALETTE",
    "alignment_uniformity",
    "cosine_by_rating",
    "line_chart",
    "modulus_surface_figure",
    "overlap_histogram",
    "score_bars",
    "score_heatmap",
    "training_curves",
    "use_theme",
    "violins",
]
