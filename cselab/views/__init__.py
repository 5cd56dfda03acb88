"""Figures and interactive views (plotly, ipywidgets). Every view has a static form: a headless run and its page show the same."""

from cselab.views.attention import AttentionInspector
from cselab.views.bertviz_views import show_bertviz
from cselab.views.cael import CaelExplorer
from cselab.views.figures import (
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
from cselab.views.norms import NormExplorer
from cselab.views.playground import LossPlayground
from cselab.views.runs import Run, RunComparer
from cselab.views.theme import PALETTE, use_theme
from cselab.views.view import View

__all__ = [
    "PALETTE",
    "AttentionInspector",
    "CaelExplorer",
    "LossPlayground",
    "NormExplorer",
    "Run",
    "RunComparer",
    "View",
    "alignment_uniformity",
    "cosine_by_rating",
    "difference_chart",
    "energy_chart",
    "line_chart",
    "modulus_surface_figure",
    "overlap_histogram",
    "score_bars",
    "score_heatmap",
    "show_bertviz",
    "training_curves",
    "use_theme",
    "violins",
]
