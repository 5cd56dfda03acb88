"""Norm explorer: lengths of sentence vectors, with and without the last LayerNorms."""

import copy
import math
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any

import plotly.graph_objects as go
import traitlets
from plotly.subplots import make_subplots
from torch import Tensor

from cselab.analysis import Norms, vector_norms
from cselab.errors import SettingsError
from cselab.models import SentenceEncoder, TwinEncoder, remove_layer_norms
from cselab.models.texts import as_sentences
from cselab.workbook.plots.theme import PALETTE
from cselab.workbook.widgets.streams import streams
from cselab.workbook.widgets.widget import Widget, escape_label, one_of, rounded

VECTORS = ("h<sup>L</sup>: [CLS] of the last layer", "h<sup>P</sup>: the pooler's output")


class NormExplorer(Widget):
    """Compare the norms of two models on the same sentences, without some of their LayerNorms.

    Shows the Euclidean lengths of h^L, [CLS] of the last layer, and of h^P, the pooler's output,
    and their standard deviation divided by their mean for every number of layers r whose two
    LayerNorms are removed: of the last r layers, in a copy, without further training. LayerNorm
    fixes the norm of h^L, so that a modulus loss can change nothing (TNCSE,
    https://arxiv.org/abs/2503.12739).

    Controls, which can be set as attributes: model_a, model_b; removed, r, from 0 to the depth;
    from_zero, whether the axis of the lengths starts at 0.

    Args:
        encoders: Models by name, of equal depth and number of heads (for example before and after
            training); a twin is shown as its two towers.
        sentences: About a hundred, as in the paper.

    Raises:
        ModelError: For encoders without BERT-like towers or of different shapes.
        SettingsError: For an unknown model or an r outside the depth.
        DataError: For a single string, and an entry that is no string.

    Examples:
        >>> import cselab
        >>> from cselab.workbook.widgets import NormExplorer
        >>> sentences = ["A man plays a guitar.", "It rains.", "Two dogs sleep."]
        >>> explorer = NormExplorer({"tiny-bert": cselab.load("tiny-bert")}, sentences)
        >>> explorer.removed = 2
        >>> explorer.removed = 7
        Traceback (most recent call last):
            ...
        cselab.errors.SettingsError: removed=7 must be a number of layers from 0 to 6
    """

    script = "norms"
    names = traitlets.List(traitlets.Unicode()).tag(sync=True)
    depth = traitlets.Int().tag(sync=True)
    model_a = traitlets.Unicode().tag(sync=True)
    model_b = traitlets.Unicode().tag(sync=True)
    removed = traitlets.Int(0).tag(sync=True)
    from_zero = traitlets.Bool(True).tag(sync=True)
    norms = traitlets.Dict().tag(sync=True)
    """What the browser has, by model; it asks for the others."""

    def __init__(
        self, encoders: Mapping[str, SentenceEncoder | TwinEncoder], sentences: Iterable[str]
    ):
        self.streams = streams(encoders)
        self.sentences = as_sentences(sentences, "NormExplorer")
        self.measure = lru_cache(maxsize=None)(self._measure)
        names = list(self.streams)
        depth = self.streams[names[0]].tower.config.num_hidden_layers
        super().__init__(names=names, depth=depth, model_a=names[0], model_b=names[-1])

    @traitlets.validate("model_a", "model_b")
    def _known_model(self, proposal: dict) -> str:
        return one_of("model", proposal["value"], list(self.streams))

    @traitlets.validate("removed")
    def _within_depth(self, proposal: dict) -> int:
        if not 0 <= proposal["value"] <= self.depth:
            raise SettingsError(
                f"removed={proposal['value']} must be a number of layers from 0 to {self.depth}"
            )
        return proposal["value"]

    def answer(self, question: dict[str, Any]) -> None:
        """Measure the model that the browser lacks."""
        self._give(question["model"])

    def _measure(self, name: str) -> list[Norms]:
        """Norms of a model without the LayerNorms of its last 0, 1, 2 ... layers."""
        tower = copy.deepcopy(self.streams[name].tower)
        found = []
        for removed in range(self.depth + 1):
            if removed:
                remove_layer_norms(tower, removed)
            found.append(vector_norms(tower, self.streams[name].tokenizer, self.sentences))
        return found

    def _give(self, *names: str) -> None:
        """Send what the browser lacks of these models."""
        lacking = {name: self._rounded(name) for name in names if name not in self.norms}
        if lacking:
            self.norms = {**self.norms, **lacking}

    def _rounded(self, name: str) -> dict[str, Any]:
        """By vector: lengths (r, sentence) and their sd / mean (r,), to 4 digits.

        Without a pooler, there is no "pooled".
        """
        return {
            vector: {
                "lengths": [[rounded(x) for x in lengths.tolist()] for lengths in by_removed],
                "spread": [rounded(_spread(lengths)) for lengths in by_removed],
            }
            for vector, by_removed in self._by_vector(name).items()
            if by_removed[0] is not None
        }

    def _by_vector(self, name: str) -> dict[str, Sequence[Tensor]]:
        return {
            vector: [getattr(norms, vector) for norms in self.measure(name)]
            for vector in Norms._fields
        }

    def page_state(self) -> dict[str, Any]:
        """With every model's norms."""
        self._give(*self.streams)
        return super().page_state()

    def static(self) -> go.Figure:
        """Lengths with and without LayerNorms, and their sd / mean for every r.

        The LayerNorms of the last `removed` layers are left out; for 0, those of all layers.
        """
        after = self.removed or self.depth
        figure = make_subplots(
            rows=2,
            cols=2,
            vertical_spacing=0.2,
            horizontal_spacing=0.14,
            subplot_titles=[*VECTORS, *("spread of " + vector.split(":")[0] for vector in VECTORS)],
        )
        models = dict.fromkeys((self.model_a, self.model_b))
        self._give(*models)
        for colour, (side, name) in zip(PALETTE, zip("AB", models, strict=False), strict=False):
            label = f"{side}: {escape_label(name)}"
            look = dict(name=label, legendgroup=label, line_color=colour)
            for column, by_removed in enumerate(self._by_vector(name).values(), 1):
                if by_removed[0] is None:
                    continue
                figure.add_violin(
                    x=[str(removed) for removed in (0, after) for _ in self.sentences],
                    y=[x for removed in (0, after) for x in by_removed[removed].tolist()],
                    points="all",
                    pointpos=0,
                    marker=dict(size=3),
                    spanmode="hard",
                    showlegend=column == 1,
                    row=1,
                    col=column,
                    **look,
                )
                figure.add_scatter(
                    y=[100 * _spread(lengths) for lengths in by_removed],
                    mode="lines+markers",
                    showlegend=False,
                    row=2,
                    col=column,
                    **look,
                )
        figure.add_vline(x=self.removed, line=dict(color="#999", dash="dot"), row=2, col="all")
        figure.update_yaxes(title="length (Euclidean norm)", row=1, col=1)
        figure.update_yaxes(title="sd / mean, %", row=2, col=1)
        figure.update_yaxes(rangemode="tozero" if self.from_zero else "normal", row=1)
        figure.update_yaxes(rangemode="tozero", row=2)
        figure.update_xaxes(title="last layers without LayerNorm")
        figure.update_xaxes(type="category", row=1)
        figure.update_xaxes(dtick=1, row=2)
        return figure.update_layout(
            height=760, violinmode="group", legend=dict(y=1.07), margin=dict(t=110, b=70)
        )


def _spread(lengths: Tensor) -> float:
    """sd / mean; NaN for one length."""
    return (lengths.std() / lengths.mean()).item() if len(lengths) > 1 else math.nan
