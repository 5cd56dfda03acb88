"""Interactive widgets (ipywidgets), each with a static figure for headless runs and their pages."""

from cselab.widgets.attention import AttentionInspector
from cselab.widgets.bertviz_page import show_bertviz
from cselab.widgets.cael import CaelExplorer
from cselab.widgets.live import LiveTraining
from cselab.widgets.norms import NormExplorer
from cselab.widgets.playground import LossPlayground
from cselab.widgets.widget import Widget

__all__ = [
    "AttentionInspector",
    "CaelExplorer",
    "LiveTraining",
    "LossPlayground",
    "NormExplorer",
    "Widget",
    "show_bertviz",
]
