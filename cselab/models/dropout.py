"""Dropout that a CPU can afford: torch draws one random number an element, one after the other, and that is up to half of a step
of a small model."""

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn
from transformers import AttentionInterface, AttentionMaskInterface
from transformers.integrations.sdpa_attention import sdpa_attention_forward
from transformers.masking_utils import sdpa_mask

LEVELS = 2**16
ATTENTION = "sdpa_fast_dropout"
"""The name, for transformers, of attention that is torch's own except for the dropout of a CPU in training."""


def fast_dropout(x: Float[Tensor, "*shape"], p: float) -> Float[Tensor, "*shape"]:
    """`F.dropout(x, p)` whose mask on a CPU takes sixteen bits an element, from a generator that torch's seeds; elsewhere torch's own.

    The probability is rounded to a 65,536th and the rest is scaled by exactly its inverse, so the mean stays. torch's default
    generator moves by one draw: seeds, replays and resumed runs work as with torch's, with other masks.
    """
    dropped = round(p * LEVELS)
    if not dropped or x.device.type != "cpu" or torch.compiler.is_compiling():  # a compiler fuses torch's own
        return F.dropout(x, p)
    seed = torch.empty((), dtype=torch.int64).random_().item()
    words = np.random.SFC64(seed).random_raw(-(-x.numel() // 4))
    bits = torch.from_numpy(words.view(np.int16))[: x.numel()].view(x.shape)
    first_kept = dropped - LEVELS // 2
    kept = bits.clamp_(first_kept - 1, first_kept).sub_(first_kept - 1)  # 0 or 1; comparing is slower
    return x * kept.to(x.dtype).mul_(LEVELS / (LEVELS - dropped))


class FastDropout(nn.Dropout):
    """`nn.Dropout` by `fast_dropout`."""

    def forward(self, input: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
        return fast_dropout(input, self.p) if self.training else input


def attention(
    module: nn.Module, query: Tensor, key: Tensor, value: Tensor, attention_mask: Tensor | None, *,
    dropout: float = 0.0, scaling: float, **kwargs,
) -> tuple[Tensor, None]:  # fmt: skip
    """(B, h, L, e) each to (B, L, h, e); mask: True where a key is read, or None: all are."""
    whole = attention_mask is not None or not module.is_causal
    if not (dropout and whole and query.device.type == "cpu") or torch.compiler.is_compiling():
        return sdpa_attention_forward(
            module, query, key, value, attention_mask, dropout=dropout, scaling=scaling, **kwargs
        )
    scores = query * scaling @ key.transpose(-1, -2)
    if attention_mask is not None:
        unread = torch.finfo(scores.dtype).min
        scores = scores + torch.zeros_like(attention_mask, dtype=scores.dtype).masked_fill_(~attention_mask, unread)
    return (fast_dropout(scores.softmax(-1), dropout) @ value).transpose(1, 2).contiguous(), None


AttentionInterface.register(ATTENTION, attention)
AttentionMaskInterface.register(ATTENTION, sdpa_mask)


def use_fast_dropout(model: nn.Module) -> None:
    """Replaces every `nn.Dropout` inside `model`, in place."""
    for module in model.modules():
        for name, child in module.named_children():
            if type(child) is nn.Dropout:
                setattr(module, name, FastDropout(child.p).train(child.training))


@contextmanager
def dropout_rate(model: nn.Module, p: float) -> Iterator[None]:
    """Every dropout inside `model`, attention's too, has the rate p until the block ends."""
    found = {module: module.p for module in model.modules() if isinstance(module, nn.Dropout)}
    for module in found:
        module.p = p
    try:
        yield
    finally:
        for module, before in found.items():
            module.p = before
