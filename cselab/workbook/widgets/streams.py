"""The towers of encoders by name, and the widgets that compare two of them."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import traitlets
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from cselab.errors import ModelError
from cselab.models import SentenceEncoder, TwinEncoder
from cselab.models.encode import Encoder
from cselab.models.layers import is_bert_like
from cselab.workbook.widgets.widget import Widget, one_of


class Stream(NamedTuple):
    """A tower, and the other tower of its twin, whose values its cross-attention layers read."""

    tower: PreTrainedModel
    tokenizer: PreTrainedTokenizerBase
    encoder: str  # its name
    other: PreTrainedModel | None = None
    cael: tuple[int, ...] = ()  # from 1

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of layers and heads."""
        return self.tower.config.num_hidden_layers, self.tower.config.num_attention_heads


def streams(encoders: Mapping[str, SentenceEncoder | TwinEncoder]) -> dict[str, Stream]:
    """Name the towers of encoders; those of a twin are "name, tower I" and "name, tower II".

    Raises:
        ModelError: For encoders without BERT-like towers, such as a decoder or an ensemble, and for
            towers of different depth or number of heads, which cannot stand side by side.
    """
    by_name = {}
    for name, encoder in encoders.items():
        supported = isinstance(encoder, (SentenceEncoder, TwinEncoder))
        towers = encoder.backbones if supported else ()
        if not towers or not all(is_bert_like(tower.config) for tower in towers):
            raise ModelError(f"{name!r} has no BERT-like tower to inspect; give encoders or twins")
        if isinstance(encoder, TwinEncoder):
            i, ii = encoder.backbones
            by_name[f"{name}, tower I"] = Stream(i, encoder.tokenizer, name, ii, encoder.cael)
            by_name[f"{name}, tower II"] = Stream(ii, encoder.tokenizer, name, i, encoder.cael)
        else:
            by_name[name] = Stream(encoder.backbone, encoder.tokenizer, name)
    if len({stream.shape for stream in by_name.values()}) > 1:
        shapes = ((name, *stream.shape) for name, stream in by_name.items())
        listed = ", ".join(f"{name!r} {n} × {h}" for name, n, h in shapes)
        raise ModelError(f"the models differ in layers × heads: {listed}; give models of one shape")
    return by_name


def side_by_side(
    encoders: Mapping[str, SentenceEncoder | TwinEncoder], others: Mapping[str, Encoder]
) -> dict[str, Any]:
    """`encoders`, and those of `others` that a widget can show beside them; prints one line for
    each that it cannot, such as one of another depth.

    Examples:
        >>> import cselab
        >>> from cselab.workbook.widgets import side_by_side
        >>> others = {name: cselab.load(name) for name in ("plain-bert", "minilm-mlm")}
        >>> shown = side_by_side({"tiny-bert": cselab.load("tiny-bert")}, others)
        ... # doctest: +ELLIPSIS
        minilm-mlm is not in the widgets: the models differ in layers × heads: ...
        >>> list(shown)
        ['tiny-bert', 'plain-bert']
    """
    shown: dict[str, Any] = dict(encoders)
    for name, encoder in others.items():
        try:
            streams(shown | {name: encoder})
        except ModelError as error:
            print(f"{name} is not in the widgets: {error}")
        else:
            shown[name] = encoder
    return shown


class ModelPair(Widget):
    """A widget of two models, the first and the last of `encoders` at the start."""

    names = traitlets.List(traitlets.Unicode()).tag(sync=True)
    depth = traitlets.Int().tag(sync=True)
    heads = traitlets.Int().tag(sync=True)
    model_a = traitlets.Unicode().tag(sync=True)
    model_b = traitlets.Unicode().tag(sync=True)

    def __init__(self, encoders: Mapping[str, SentenceEncoder | TwinEncoder], **traits: Any):
        self.streams = streams(encoders)
        names = list(self.streams)
        traits["depth"], traits["heads"] = self.streams[names[0]].shape
        super().__init__(names=names, model_a=names[0], model_b=names[-1], **traits)

    @traitlets.validate("model_a", "model_b")
    def _known_model(self, proposal: dict) -> str:
        return one_of("model", proposal["value"], list(self.streams))
