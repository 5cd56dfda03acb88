"""Static plotly figures of results, with a common theme."""

from cselab.workbook.plots.figures import (
    alignment_uniformity,
    couples_chart,
    difference_chart,
    energy_chart,
    line_chart,
    overlap_histogram,
    score_bars,
    score_heatmap,
    score_intervals,
    training_curves,
    violins,
)
from cselab.workbook.plots.lessons import (
    batch_cosines,
    modulus_paths,
    moving_points,
    negative_shares,
    paths,
)
from cselab.workbook.plots.theme import PALETTE, use_theme

__all__ = [
    "PALETTE",
    "alignment_uniformity",
    "batch_cosines",
    "couples_chart",
    "difference_chart",
    "energy_chart",
    "line_chart",
    "modulus_paths",
    "moving_points",
    "negative_shares",
    "overlap_histogram",
    "paths",
    "score_bars",
    "score_heatmap",
    "score_intervals",
    "training_curves",
    "use_theme",
    "violins",
]
