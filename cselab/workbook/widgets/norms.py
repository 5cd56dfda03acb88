"""Norm explorer: lengths of sentence vectors, with and without the last LayerNorms."""

import copy
import math
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any

import plotly.graph_objects as go
import traitlets
from torch import Tensor

from cselab.analysis import Norms, vector_norms
from cselab.errors import SettingsError
from cselab.models import SentenceEncoder, TwinEncoder, remove_layer_norms
from cselab.models.texts import as_sentences
from cselab.workbook.widgets.figure import Panel, plain_figure
from cselab.workbook.widgets.streams import ModelPair
from cselab.workbook.widgets.widget import rounded

VECTORS = {"cls": "h^L: [CLS] of the last layer", "pooled": "h^P: the pooler's output"}


class NormExplorer(ModelPair):
    """Compare the norms of two models on the same sentences, without some of their LayerNorms.

    Shows the lengths of h^L, [CLS] of the last layer, and of h^P, the pooler's output, and their
    sd / mean for every r: the LayerNorms of the last r layers are removed in a copy, without
    training. LayerNorm gives all h^L nearly the same norm: a modulus loss reads their angles alone
    (TNCSE, https://arxiv.org/abs/2503.12739).

    Controls, which can be set as attributes: model_a, model_b; removed, r, from 0 to the depth;
    from_zero, whether the axis of the lengths starts at 0.

    Args:
        encoders: Models of equal depth and number of heads; a twin is shown as its two towers.
        sentences: About a hundred, as in the paper.

    Raises:
        ModelError: For encoders without BERT-like towers or of different shapes.
        SettingsError: For an unknown model or an r outside the depth.

    Examples:
        >>> import cselab
        >>> from cselab.workbook.widgets import NormExplorer
        >>> sentences = ["A man plays a guitar.", "It rains.", "Two dogs sleep."]
        >>> explorer = NormExplorer({"tiny-bert": cselab.load("tiny-bert")}, sentences)
        >>> explorer.removed = 2
        >>> explorer.removed = 7
        Traceback (most recent call last):
            ...
        cselab.errors.SettingsError: removed=7 must be a number from 0 to 6 layers
    """

    script = "norms"
    removed = traitlets.Int(0).tag(sync=True)
    from_zero = traitlets.Bool(True).tag(sync=True)
    norms = traitlets.Dict().tag(sync=True)  # by model; the browser asks for others

    def __init__(
        self, encoders: Mapping[str, SentenceEncoder | TwinEncoder], sentences: Iterable[str]
    ):
        self.sentences = as_sentences(sentences, "NormExplorer")
        self.measure = lru_cache(maxsize=None)(self._measure)
        super().__init__(encoders)

    @traitlets.validate("removed")
    def _within_depth(self, proposal: dict) -> int:
        removed = proposal["value"]
        if not 0 <= removed <= self.depth:
            raise SettingsError(f"removed={removed} must be a number from 0 to {self.depth} layers")
        return removed

    def answer(self, question: dict[str, Any]) -> None:
        """Measure the model that the browser lacks."""
        self._give(question["model"])

    def _measure(self, name: str) -> list[Norms]:
        """Measure a model without the LayerNorms of its last 0, 1, 2 ... layers."""
        tower = copy.deepcopy(self.streams[name].tower)
        norms = []
        for removed in range(self.depth + 1):
            if removed:
                remove_layer_norms(tower, removed)
            norms.append(vector_norms(tower, self.streams[name].tokenizer, self.sentences))
        return norms

    def _give(self, *names: str) -> None:
        """Send what the browser lacks of these models."""
        lacking = {name: self._rounded(name) for name in names if name not in self.norms}
        if lacking:
            self.norms = {**self.norms, **lacking}

    def _rounded(self, name: str) -> dict[str, Any]:
        """Round lengths (r, sentence) and their sd / mean (r,), by vector."""
        result = {}
        for vector in VECTORS:
            by_removed = [getattr(norms, vector) for norms in self.measure(name)]
            if by_removed[0] is not None:  # the pooler's
                result[vector] = {
                    "lengths": [[rounded(x) for x in lengths.tolist()] for lengths in by_removed],
                    "spread": [rounded(_spread(lengths)) for lengths in by_removed],
                }
        return result

    def page_state(self) -> dict[str, Any]:
        """Return the state with every model's norms."""
        self._give(*self.streams)
        return super().page_state()

    def static(self) -> go.Figure:
        """The sd / mean of the lengths for every r."""
        models = dict.fromkeys((self.model_a, self.model_b))
        self._give(*models)
        panels = {}
        for vector, title in VECTORS.items():
            lines = {
                name: (list(range(self.depth + 1)), by_vector[vector]["spread"])
                for name in models
                if vector in (by_vector := self.norms[name])
            }
            if lines:
                x = f"last layers without LayerNorm (shown: {self.removed})"
                panels[title] = Panel(x, "sd / mean", lines)
        return plain_figure(panels)


def _spread(lengths: Tensor) -> float:
    """sd / mean; NaN for one length."""
    return (lengths.std() / lengths.mean()).item() if len(lengths) > 1 else math.nan
