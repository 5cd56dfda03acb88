"""Attention inspector: the attention of two models on a sentence, by layer, head and token."""

import json
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

import plotly.graph_objects as go
import traitlets

from cselab.analysis import cosine_by_token
from cselab.models import SentenceEncoder, TwinEncoder
from cselab.widgets.attention_figure import attention_figure
from cselab.widgets.reading import LONGEST, SHOWN, read_sentence
from cselab.widgets.streams import streams
from cselab.widgets.widget import Widget, one_of

SENTENCES = ("sentence 1", "sentence 2", "1 in A, 2 in B")
"""What the maps can show of two sentences."""
PAGE_BYTES = 1_000_000
"""Of readings in a page without a kernel, before compression: pairs beyond are left out."""


class AttentionInspector(Widget):
    """Compare the attention of two models, on one sentence or on a pair of sentences.

    Shows every layer and head as a thumbnail, the map of the chosen one for each model and their
    difference, what each token receives, and the share of each token class and the energy of [CLS]
    by layer. With two sentences also their cosine, and by how much it falls without each token
    (`cselab.analysis.cosine_by_token`).

    encoders: models by name, of equal depth and number of heads, on any device; a twin is shown as
        its two towers.
    sentence: the first sentence. At most 64 tokens are read.
    pairs: pairs of sentences to choose from.

    Controls, which can be set as attributes: sentence, second; model_a, model_b; layer, from 1;
    head, from 1, or 0 for their mean; show, one of `SHOWN`; shown_sentence, one of `SENTENCES`;
    hide_special and hide_punctuation, which blank the rows and columns of [CLS] and [SEP], and of
    the final punctuation, so that they do not stretch the colour scale.

    Raises ModelError for encoders without BERT-like towers, SettingsError for a model without this
    name.

    >>> inspector = AttentionInspector({"mine": encoder}, "A man plays a guitar.")  # doctest: +SKIP
    >>> inspector.layer = 2  # doctest: +SKIP
    """

    script = "attention"
    models = traitlets.List().tag(sync=True)
    pairs = traitlets.List().tag(sync=True)
    sentence = traitlets.Unicode().tag(sync=True)
    second = traitlets.Unicode().tag(sync=True)
    model_a = traitlets.Unicode().tag(sync=True)
    model_b = traitlets.Unicode().tag(sync=True)
    layer = traitlets.Int().tag(sync=True)
    head = traitlets.Int(0).tag(sync=True)
    show = traitlets.Enum(SHOWN, SHOWN[0]).tag(sync=True)
    shown_sentence = traitlets.Enum(SENTENCES, SENTENCES[0]).tag(sync=True)
    hide_special = traitlets.Bool(False).tag(sync=True)
    hide_punctuation = traitlets.Bool(False).tag(sync=True)
    readings = traitlets.List().tag(sync=True)
    """What the browser has from the start; it asks for the rest."""

    def __init__(
        self,
        encoders: Mapping[str, SentenceEncoder | TwinEncoder],
        sentence: str,
        pairs: Sequence[tuple[str, str]] = (),
    ):
        self.streams = streams(encoders)
        names = list(self.streams)
        config = self.streams[names[0]].tower.config
        self.depth, self.heads = config.num_hidden_layers, config.num_attention_heads
        self.read = lru_cache(64)(lambda name, text: read_sentence(self.streams[name], text))
        self.compare = lru_cache(64)(self._compare)
        super().__init__(
            models=[
                {"name": name, "layers": self.depth, "heads": self.heads, "cael": list(stream.cael)}
                for name, stream in self.streams.items()
            ],
            pairs=[list(pair) for pair in pairs],
            sentence=sentence,
            model_a=names[0],
            model_b=names[-1],
            layer=self.depth,
        )
        self.readings = [self._answer("read", name, sentence) for name in {names[0], names[-1]}]
        self.on_msg(self._on_message)

    @traitlets.validate("model_a", "model_b")
    def _known_model(self, proposal: dict) -> str:
        return one_of("model", proposal["value"], list(self.streams))

    @traitlets.validate("layer", "head")
    def _within(self, proposal: dict) -> int:
        lowest, highest = (1, self.depth) if proposal["trait"].name == "layer" else (0, self.heads)
        return min(max(proposal["value"], lowest), highest)

    def static(self) -> go.Figure:
        """The maps of both models, and their shares and energy by layer."""
        texts = {
            SENTENCES[0]: (self.sentence, self.sentence),
            SENTENCES[1]: (self.second or self.sentence,) * 2,
            SENTENCES[2]: (self.sentence, self.second or self.sentence),
        }[self.shown_sentence]
        sides = [
            (name, self.streams[name].cael, self.read(name, text))
            for name, text in zip((self.model_a, self.model_b), texts, strict=True)
        ]
        return attention_figure(sides, self.layer, self.head, self.show)

    def page_state(self) -> dict[str, Any]:
        """The state with all models' readings of the sentence, and of as many pairs as fit."""
        readings, pairs, size = [], [], 0
        for number, texts in enumerate([(self.sentence, self.second), *self.pairs]):
            answers = list(self._answers(*texts))
            size += sum(len(json.dumps(answer)) for answer in answers)
            if number and size > PAGE_BYTES:
                break
            readings += answers
            pairs += [list(texts)] if number else []
        return {**super().page_state(), "readings": readings, "pairs": pairs}

    def _answers(self, first: str, second: str) -> Iterator[dict]:
        for name in self.streams:
            for text in filter(None, dict.fromkeys((first, second))):
                yield self._answer("read", name, text)
            if second:
                yield self._answer("compare", name, first, second)

    def _on_message(self, _widget: Any, message: dict, _buffers: Any) -> None:
        """Answer the browser's [kind, model, sentence ...]."""
        if message.get("ask"):
            self.send(self._answer(*message["ask"]))

    def _answer(self, kind: str, name: str, *texts: str) -> dict[str, Any]:
        found = self.read(name, *texts).packed() if kind == "read" else self.compare(name, *texts)
        return {"key": [kind, name, *texts], "found": found}

    def _compare(self, name: str, first: str, second: str) -> dict[str, Any]:
        encoder = self.streams[name].encoder
        cosine, *falls = cosine_by_token(encoder, first, second, max_length=LONGEST)
        shown = [[None if x != x else round(x, 4) for x in fall.tolist()] for fall in falls]
        return {"cosine": cosine, "falls": shown}
