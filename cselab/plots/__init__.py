"""Static plotly figures of results, with a common theme."""

from cselab.plots.figures import (
    alignment_uniformity,
    cosine_by_rating,
    difference_chart,
    energy_chart,
    line_chart,
    modulus_surface_figure,
    overlap_histogram,
    score_bars,
    score_heatmap,
    training_curves,
    violins,
)
from cselab.plots.theme import PALETTE, use_theme

__all__ = [
    "PALETTE",
    "alignment_uniformity",
    "cosine_by_rating",
    "difference_chart",
    "energy_chart",
    "line_chart",
    "modulus_surface_figure",
    "overlap_histogram",
    "score_bars",
    "score_heatmap",
    "training_curves",
    "use_theme",
    "violins",
]
