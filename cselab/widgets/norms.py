"""Norm explorer: norms of sentence vectors, with and without the last LayerNorms."""

import copy
from collections.abc import Mapping, Sequence
from functools import lru_cache

import ipywidgets as widgets
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from cselab.analysis import Norms, vector_norms
from cselab.models import SentenceEncoder, TwinEncoder, remove_layer_norms
from cselab.plots.theme import PALETTE
from cselab.widgets.streams import streams
from cselab.widgets.widget import FigureApp, escape_label

VECTORS = ("h<sup>L</sup>: last layer's [CLS]", "h<sup>P</sup>: pooler's output")


class NormExplorer(FigureApp):
    """Compare the norms of two models on the same sentences.

    A slider removes both LayerNorms of the last layers, without further training.

    encoders: models by name, of equal depth (for example before and after training); a twin is
        shown as its two towers.
    sentences: about a hundred, as in the papers.
    """

    def __init__(
        self, encoders: Mapping[str, SentenceEncoder | TwinEncoder], sentences: Sequence[str]
    ):
        self.streams, self.sentences = streams(encoders), list(sentences)
        names = list(self.streams)
        self.depth = self.streams[names[0]].tower.config.num_hidden_layers
        self.norms = lru_cache(maxsize=None)(self._norms)
        self.controls = {
            "model_a": widgets.Dropdown(options=names, description="model A"),
            "model_b": widgets.Dropdown(options=names, value=names[-1], description="model B"),
            "removed": widgets.IntSlider(
                0, 0, self.depth, description="removed", continuous_update=False
            ),
        }

    def _norms(self, name: str, removed: int) -> Norms:
        tower, tokenizer = self.streams[name][:2]
        if removed:
            tower = copy.deepcopy(tower)
            remove_layer_norms(tower, removed)
        return vector_norms(tower, tokenizer, self.sentences)

    def figure(self, *, model_a: str, model_b: str, removed: int) -> go.Figure:
        """The figure for these values of the controls."""
        figure = make_subplots(
            rows=2,
            cols=2,
            vertical_spacing=0.16,
            horizontal_spacing=0.1,
            subplot_titles=[
                *(f"{vector}, {removed} of {self.depth} removed" for vector in VECTORS),
                *(f"spread of {vector.split(':')[0]}: sd / mean" for vector in VECTORS),
            ],
        )
        models = dict.fromkeys((model_a, model_b))
        for colour, (side, name) in zip(PALETTE, zip("AB", models, strict=False), strict=False):
            for column in (1, 2):
                lengths = self.norms(name, removed)[column - 1]
                if lengths is None:
                    continue
                label = f"{side}: {escape_label(name)}"
                figure.add_violin(
                    y=lengths.tolist(),
                    name=label,
                    legendgroup=label,
                    line_color=colour,
                    points="all",
                    pointpos=0,
                    marker=dict(size=3),
                    spanmode="hard",
                    showlegend=column == 1,
                    row=1,
                    col=column,
                )
                spread = [self.norms(name, r)[column - 1] for r in range(self.depth + 1)]
                figure.add_scatter(
                    y=[(s.std() / s.mean()).item() for s in spread],
                    mode="lines+markers",
                    line_color=colour,
                    name=label,
                    legendgroup=label,
                    showlegend=False,
                    row=2,
                    col=column,
                )
        figure.add_vline(x=removed, line=dict(color="#bbb", dash="dot"), row=2, col="all")
        figure.update_yaxes(title="norm", row=1, col=1)
        figure.update_yaxes(title="sd / mean", row=2, col=1)
        figure.update_yaxes(rangemode="tozero")
        figure.update_xaxes(title="layers without LayerNorm", dtick=1, row=2)
        figure.update_xaxes(showticklabels=False, row=1)
        return figure.update_layout(
            height=760, legend=dict(y=-0.12, yanchor="top"), margin=dict(t=60, b=90)
        )
