"""The towers of encoders by name, for the attention inspector and the norm explorer."""

from collections.abc import Mapping
from typing import NamedTuple

from transformers import PreTrainedModel, PreTrainedTokenizerBase

from cselab.errors import ModelError
from cselab.models import SentenceEncoder, TwinEncoder


class Stream(NamedTuple):
    """A tower, and the other tower of its twin, whose values its cross-attention layers read.

    Attributes:
        tower: The tower.
        tokenizer: Tokenizer of the tower.
        encoder: Name of what the tower belongs to, which gives sentence vectors.
        other: The other tower; None for a single tower.
        cael: The cross-attention layers, from 1.
    """

    tower: PreTrainedModel
    tokenizer: PreTrainedTokenizerBase
    encoder: str
    other: PreTrainedModel | None = None
    cael: tuple[int, ...] = ()


def streams(encoders: Mapping[str, SentenceEncoder | TwinEncoder]) -> dict[str, Stream]:
    """Towers of encoders by name; those of a twin are "name, tower I" and "name, tower II".

    Args:
        encoders: Single towers and twins, by name.

    Raises:
        ModelError: For encoders without BERT-like towers, such as a decoder or an ensemble, and for
            towers of different depth or number of heads, which cannot stand side by side.
    """
    by_name = {}
    for name, encoder in encoders.items():
        supported = isinstance(encoder, (SentenceEncoder, TwinEncoder))
        towers = encoder.backbones if supported else ()
        if not towers or not all(hasattr(tower, "encoder") for tower in towers):
            raise ModelError(
                f"{name!r} has no BERT-like tower to inspect; give encoders or twins, not decoders "
                "or ensembles"
            )
        if isinstance(encoder, TwinEncoder):
            i, ii = encoder.backbones
            by_name[f"{name}, tower I"] = Stream(i, encoder.tokenizer, name, ii, encoder.cael)
            by_name[f"{name}, tower II"] = Stream(ii, encoder.tokenizer, name, i, encoder.cael)
        else:
            by_name[name] = Stream(encoder.backbone, encoder.tokenizer, name)
    shapes = {
        name: (stream.tower.config.num_hidden_layers, stream.tower.config.num_attention_heads)
        for name, stream in by_name.items()
    }
    if len(set(shapes.values())) > 1:
        listed = ", ".join(f"{name!r} {n} × {h}" for name, (n, h) in shapes.items())
        raise ModelError(f"the models differ in layers × heads: {listed}; give models of one shape")
    return by_name
