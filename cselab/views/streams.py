"""The towers inside encoders, by name: what the inspectors look at."""

from collections.abc import Mapping
from typing import NamedTuple

from transformers import PreTrainedModel, PreTrainedTokenizerBase

from cselab.errors import ModelError
from cselab.models import SentenceEncoder, TwinEncoder


class Stream(NamedTuple):
    """One tower, and the other of its twin, whose values its cross-attention layers read."""

    tower: PreTrainedModel
    tokenizer: PreTrainedTokenizerBase
    other: PreTrainedModel | None = None
    cael: tuple[int, ...] = ()


def streams(encoders: Mapping[str, SentenceEncoder | TwinEncoder]) -> dict[str, Stream]:
    """A single encoder under its name, a twin as "name, tower I" and "name, tower II".

    Raises ModelError for what has no BERT-like tower: a decoder, an ensemble.
    """
    found = {}
    for name, encoder in encoders.items():
        towers = getattr(encoder, "backbones", ()) if isinstance(encoder, (SentenceEncoder, TwinEncoder)) else ()
        if not towers or not all(hasattr(tower, "encoder") for tower in towers):
            raise ModelError(
                f"{name!r} has no BERT-like tower to look into; give encoders or twins, not decoders or ensembles"
            )
        if isinstance(encoder, TwinEncoder):
            one, two = encoder.backbones
            found[f"{name}, tower I"] = Stream(one, encoder.tokenizer, two, encoder.cael)
            found[f"{name}, tower II"] = Stream(two, encoder.tokenizer, one, encoder.cael)
        else:
            found[name] = Stream(encoder.backbone, encoder.tokenizer)
    return found
