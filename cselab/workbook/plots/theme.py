"""Theme of all figures: a colour-blind-safe palette (Okabe and Ito 2008), legible at 1280 px."""

import os

import plotly.graph_objects as go
import plotly.io as pio
from IPython.core.getipython import get_ipython
from IPython.display import HTML, display

PALETTE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")

_PLOT = '[data-jp-theme-light="false"] .js-plotly-plot'
_LAYERS = ".infolayer, .xaxislayer-above, .yaxislayer-above, .polarlayer"
DARK = f"""<style>
{_PLOT} .main-svg {{ background: transparent !important; }}
{_PLOT} rect.bg {{ fill: transparent !important; }}
{_PLOT} :is({_LAYERS}) text {{ fill: var(--jp-content-font-color1) !important; }}
{_PLOT} .gridlayer path {{ stroke: var(--jp-border-color2) !important; }}
</style>"""
"""plotly draws white figures in JupyterLab's dark theme; this style lets them follow it."""


def use_theme() -> None:
    """Make this theme plotly's default, and render without a network, in JupyterLab and pages.

    In a notebook it also lets plotly's figures follow JupyterLab's dark theme.

    Examples:
        >>> import plotly.io
        >>> from cselab.workbook.plots import use_theme
        >>> use_theme()
        >>> plotly.io.templates.default
        'cselab'
    """
    axis = dict(
        showline=True,
        linecolor="#888",
        gridcolor="#e5e5e5",
        zeroline=False,
        ticks="outside",
        automargin=True,
    )
    pio.templates["cselab"] = go.layout.Template(
        layout=dict(
            colorway=PALETTE,
            font=dict(family="system-ui, sans-serif", size=14, color="#222"),
            title=dict(x=0, xanchor="left", xref="paper", font=dict(size=17)),
            paper_bgcolor="white",
            plot_bgcolor="white",
            xaxis=axis,
            yaxis=axis,
            colorscale=dict(sequential="Cividis"),
            legend=dict(orientation="h", y=1.02, yanchor="bottom", x=0),
            margin=dict(l=70, r=30, t=90, b=60),
            height=420,
        )
    )
    pio.templates.default = "cselab"
    # plotly reads the variable with its first figure, and keeps a user's own; to set
    # `pio.renderers` takes a second, in which it imports nbformat
    os.environ.setdefault("PLOTLY_RENDERER", "plotly_mimetype")
    if hasattr(get_ipython(), "kernel") and "CSELAB_RUN_DIR" not in os.environ:
        display(HTML(DARK))
