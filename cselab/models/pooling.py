"""Pooling: from token states to one vector per sentence."""

from collections.abc import Sequence

import torch
from jaxtyping import Float, Int
from torch import Tensor

from cselab.errors import ModelError, suggest

POOLINGS = ("cls", "mean", "first_last", "last_two", "last_token")
"""Poolings of token states; a SentenceEncoder also has "pooler" and "mask"."""


def pool(
    hidden_states: Sequence[Tensor] | Float[Tensor, "B L d"], mask: Int[Tensor, "B L"], how: str
) -> Float[Tensor, "B d"]:
    """Pool the states of all layers into one vector per sentence.

    Args:
        hidden_states: (B, L, d) per layer, index 0 the embedding layer, as transformers returns
            them; a single tensor is the last layer's.
        mask: 1 for tokens, 0 for padding, which is ignored.
        how: "cls": first token of the last layer. "mean": mean over tokens of the last layer.
            "first_last": mean over tokens of layer 1 and the last, averaged (the papers'
            "first-last avg."; layer 1, not the embedding layer, as SimCSE's evaluation does since
            its fix). "last_two": the same of the last two layers. "last_token": the last token that
            is not padding, on whichever side the padding is.

    Raises:
        ModelError: For an unknown pooling, or one that needs two layers where one tensor is given.
    """
    # hidden_states[-1] of a tensor would be the last sentence, not the last layer
    if isinstance(hidden_states, Tensor):
        if how in ("first_last", "last_two"):
            raise ModelError(f"pooling {how!r} needs the states of all layers, got one tensor")
        hidden_states = (hidden_states,)
    last = hidden_states[-1]
    if how == "cls":
        return last[:, 0]
    if how == "mean":
        return _mean(last, mask)
    if how == "first_last":
        return (_mean(hidden_states[1], mask) + _mean(last, mask)) / 2
    if how == "last_two":
        return (_mean(hidden_states[-2], mask) + _mean(last, mask)) / 2
    if how == "last_token":
        position = (mask * torch.arange(1, mask.shape[1] + 1, device=mask.device)).argmax(dim=1)
        return last[torch.arange(len(last), device=last.device), position]
    raise ModelError(f"unknown pooling {how!r}; {suggest(how, POOLINGS)}")


def _mean(states: Float[Tensor, "B L d"], mask: Int[Tensor, "B L"]) -> Float[Tensor, "B d"]:
    weights = mask.unsqueeze(-1).to(states.dtype)
    return (states * weights).sum(1) / weights.sum(1)
