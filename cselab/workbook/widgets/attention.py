"""Attention inspector: the attention of two models on a sentence, by layer, head and token."""

import base64
import json
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import plotly.graph_objects as go
import torch
import traitlets
from torch import Tensor

from cselab.analysis import Trace, token_classes, trace
from cselab.errors import ModelError
from cselab.models import SentenceEncoder, TwinEncoder
from cselab.models.texts import as_sentences
from cselab.workbook.analysis import cosine_by_token, token_labels
from cselab.workbook.plots.figures import escape_label
from cselab.workbook.widgets.figure import plain_figure
from cselab.workbook.widgets.streams import ModelPair, Stream
from cselab.workbook.widgets.widget import rounded

PAGE_BYTES = 600_000  # of readings in a page, before compression: pairs beyond are left out


SHOWN = {
    "weights": "attention weights",
    "lengths": "weight × length of the value",
    "other lengths": "weight × length of the other tower's value",
}
"""Quantities that the attention maps can show."""
LONGEST = 64  # tokens of a sentence; more are cut


class Reading(NamedTuple):
    """A tower's trace of a sentence of L tokens, and the trace of the other tower of its twin."""

    tokens: list[str]
    classes: Tensor  # indices into `cselab.analysis.CLASSES`, (L,)
    trace: Trace
    other_trace: Trace | None

    def packed(self) -> dict[str, Any]:
        """Pack what the browser draws as base64 of float16: attention (n, h, L, L), and lengths of
        the values (n, h, L), of the context and of the states (n, L)."""
        own, other = self.trace, self.other_trace
        lengths = {"values": own.values, "context": own.context, "states": own.states[1:]}
        lengths |= {} if other is None else {"others": other.values}
        return {
            "tokens": self.tokens,
            "classes": self.classes.tolist(),
            "attention": _half(own.attention[:, 0]),
            **{name: _half(rows[:, 0].norm(dim=-1)) for name, rows in lengths.items()},
        }


def read_sentence(stream: Stream, sentence: str) -> Reading:
    """Trace a sentence through the tower of `stream`, and through the other one of its twin."""
    cut = dict(truncation=True, max_length=LONGEST, return_token_type_ids=False)
    batch = stream.tokenizer([sentence], return_tensors="pt", **cut).to(stream.tower.device)
    ids, mask = batch["input_ids"], batch["attention_mask"]
    towers = (tower for tower in (stream.tower, stream.other) if tower is not None)
    traces = [Trace(*(x.float().cpu() for x in trace(tower, ids, mask))) for tower in towers]
    tokens = token_labels(stream.tokenizer, ids[0].tolist())
    classes = token_classes(stream.tokenizer, ids[0].cpu(), mask[0].cpu())
    return Reading(tokens, classes, traces[0], traces[1] if len(traces) > 1 else None)


def _half(x: Tensor) -> str:
    return base64.b64encode(x.to(torch.float16).contiguous().numpy().tobytes()).decode()


class AttentionInspector(ModelPair):
    """Compare the attention of two models, on one sentence or on a pair of sentences.

    Shows the maps of all heads, the chosen one of each model enlarged, and by layer the share of
    each token class and the energy of [CLS]; for two sentences also their cosine, and by how much
    it falls without each token (`analysis.cosine_by_token`).

    Controls, which can be set as attributes:

    - sentence, second; model_a, model_b; layer, from 1; head, from 1, or 0 for their mean.
    - show: "weights", "lengths" (weight × length of the value) or "other lengths" (of the other
      tower's value, which a cross-attention layer reads).
    - shown_sentence: "first", "second" or "both" (the second in model B).
    - hide_special and hide_punctuation, which take [CLS] and [SEP], and the final punctuation, out
      of the colour scale.

    Args:
        encoders: Models of equal depth and number of heads; a twin is shown as its two towers.
        sentence: The first sentence. At most 64 tokens are read.
        pairs: Pairs of sentences to choose from.

    Raises:
        ModelError: For encoders without BERT-like towers, or of different shapes.
        SettingsError: For a model of another name.

    Examples:
        >>> import cselab
        >>> from cselab.workbook.widgets import AttentionInspector
        >>> models = {name: cselab.load(name) for name in ("tiny-bert", "plain-bert")}
        >>> inspector = AttentionInspector(models, "A man plays a guitar.")
        >>> inspector.layer, inspector.head = 2, 0
        >>> inspector.model_a, inspector.model_b
        ('tiny-bert', 'plain-bert')
    """

    script = "attention"
    models = traitlets.Dict().tag(sync=True)  # by name: encoder, and cross-attention layers
    quantities = traitlets.List([[text, name] for name, text in SHOWN.items()]).tag(sync=True)
    special = traitlets.List(traitlets.Unicode()).tag(sync=True)
    pairs = traitlets.List(traitlets.List(traitlets.Unicode())).tag(sync=True)
    sentence = traitlets.Unicode().tag(sync=True)
    second = traitlets.Unicode().tag(sync=True)
    layer = traitlets.Int().tag(sync=True)
    head = traitlets.Int(0).tag(sync=True)
    show = traitlets.Enum(list(SHOWN), "weights").tag(sync=True)
    shown_sentence = traitlets.Enum(["first", "second", "both"], "first").tag(sync=True)
    hide_special = traitlets.Bool(False).tag(sync=True)
    hide_punctuation = traitlets.Bool(False).tag(sync=True)
    readings = traitlets.List(traitlets.Dict()).tag(sync=True)  # the browser asks for others

    def __init__(
        self,
        encoders: Mapping[str, SentenceEncoder | TwinEncoder],
        sentence: str,
        pairs: Sequence[tuple[str, str]] = (),
    ):
        (sentence,) = as_sentences((sentence,), "AttentionInspector")
        self.encoders = dict(encoders)
        self.read = lru_cache(64)(lambda name, text: read_sentence(self.streams[name], text))
        self.compare = lru_cache(64)(self._compare_sentences)
        read_pairs = [as_sentences(pair, "a pair") for pair in pairs]
        super().__init__(encoders, pairs=read_pairs, sentence=sentence)
        self.layer = self.depth
        self.models = {
            name: {"encoder": stream.encoder, "cael": list(stream.cael)}
            for name, stream in self.streams.items()
        }
        tokenizer = self.streams[self.model_a].tokenizer
        self.special = [str(tokenizer.cls_token), str(tokenizer.sep_token)]
        chosen = {self.model_a, self.model_b}
        self.readings = [self._result("read", name, sentence.strip()) for name in chosen]

    @traitlets.validate("layer", "head")
    def _within(self, proposal: dict) -> int:
        lowest, highest = (1, self.depth) if proposal["trait"].name == "layer" else (0, self.heads)
        return min(max(proposal["value"], lowest), highest)

    def static(self) -> go.Figure:
        """The attention weights of both models, with numbered tokens."""
        panels, head = {}, f"head {self.head}" if self.head else "mean of the heads"
        for side, name in zip("AB", (self.model_a, self.model_b), strict=True):
            reading = self.read(name, self.sentence)
            heads = reading.trace.attention[self.layer - 1, 0]
            cells = heads[self.head - 1] if self.head else heads.mean(0)
            labels = [f"{n} {escape_label(token)}" for n, token in enumerate(reading.tokens, 1)]
            panels[f"{side}: {name}, layer {self.layer}, {head}"] = go.Heatmap(
                x=labels, y=labels, z=cells.tolist(), coloraxis="coloraxis"
            )
        return plain_figure(panels)

    def page_state(self) -> dict[str, Any]:
        """Return the state with all readings of the sentence, and of as many pairs as fit."""
        readings: dict[tuple[str, ...], dict[str, Any]] = {}
        pairs: list[list[str]] = []
        for number, (first, second) in enumerate([(self.sentence, self.second), *self.pairs]):
            first, second = first.strip(), second.strip()
            more = {tuple(result["key"]): result for result in self._needed(first, second)}
            size = sum(len(json.dumps(result)) for result in {**readings, **more}.values())
            if number and size > PAGE_BYTES:
                break
            readings |= more
            pairs += [[first, second]] if number else []
        return {**super().page_state(), "readings": list(readings.values()), "pairs": pairs}

    def _needed(self, first: str, second: str) -> Iterator[dict]:
        for text in dict.fromkeys((first, second or first)):
            for name in self.streams:
                yield self._result("read", name, text)
        for name in self.encoders if second else ():
            yield self._result("compare", name, first, second)

    def answer(self, question: dict[str, Any]) -> None:
        """Send a reading or a comparison: {"ask": [kind, model, sentence ...]}."""
        self.send(self._result(*question["ask"]))

    def _result(self, kind: str, name: str, *texts: str) -> dict[str, Any]:
        result = self.read(name, *texts).packed() if kind == "read" else self.compare(name, *texts)
        return {"key": [kind, name, *texts], "found": result}

    def _compare_sentences(self, name: str, first: str, second: str) -> dict[str, Any]:
        try:
            cosine, *falls = cosine_by_token(self.encoders[name], first, second, max_length=LONGEST)
        except ModelError as error:  # such as a prompted encoder, which reads no bare sentence
            return {"error": str(error)}
        return {"cosine": cosine, "falls": [[rounded(x) for x in fall.tolist()] for fall in falls]}
