"""Interactive widgets (ipywidgets), each with a static figure for headless runs and their pages."""

from cselab.workbook.widgets.attention import AttentionInspector
from cselab.workbook.widgets.bertviz_page import show_bertviz
from cselab.workbook.widgets.cael import CaelExplorer
from cselab.workbook.widgets.live import LiveTraining
from cselab.workbook.widgets.norms import NormExplorer
from cselab.workbook.widgets.playground import LossPlayground
from cselab.workbook.widgets.streams import side_by_side
from cselab.workbook.widgets.widget import Widget

__all__ = [
    "AttentionInspector",
    "CaelExplorer",
    "LiveTraining",
    "LossPlayground",
    "NormExplorer",
    "Widget",
    "show_bertviz",
    "side_by_side",
]
