"""The towers of encoders by name, for the attention inspector and the norm explorer."""

from collections.abc import Mapping
from typing import NamedTuple

from transformers import PreTrainedModel, PreTrainedTokenizerBase

from cselab.errors import ModelError
from cselab.models import SentenceEncoder, TwinEncoder


class Stream(NamedTuple):
    """A tower, and the other tower of its twin, whose values its cross-attention layers read.

    encoder: what the tower belongs to, which gives sentence vectors.
    """

    tower: PreTrainedModel
    tokenizer: PreTrainedTokenizerBase
    encoder: SentenceEncoder | TwinEncoder
    other: PreTrainedModel | None = None
    cael: tuple[int, ...] = ()


def streams(encoders: Mapping[str, SentenceEncoder | TwinEncoder]) -> dict[str, Stream]:
    """Towers of encoders by name; those of a twin are "name, tower I" and "name, tower II".

    Raises ModelError for an encoder without BERT-like towers, such as a decoder or an ensemble.
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
            by_name[f"{name}, tower I"] = Stream(i, encoder.tokenizer, encoder, ii, encoder.cael)
            by_name[f"{name}, tower II"] = Stream(ii, encoder.tokenizer, encoder, i, encoder.cael)
        else:
            by_name[name] = Stream(encoder.backbone, encoder.tokenizer, encoder)
    return by_name
