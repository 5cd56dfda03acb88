"""Dropout that is fast on a CPU.

torch draws one random number per element, one after the other, which is up to half of the training
time of a small model.
"""

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
"""transformers' name of the attention below: torch's, except for dropout on a CPU in training."""


def fast_dropout(x: Float[Tensor, "*shape"], p: float) -> Float[Tensor, "*shape"]:
    """`F.dropout(x, p)`; on a CPU the mask takes sixteen random bits per element.

    torch's default generator seeds the generator of the bits and moves by one draw: seeds, replays
    and resumed runs work as with torch's dropout, with other masks. The probability is rounded to
    a multiple of 1/65,536, and the kept values are scaled exactly, so that the mean stays. On other
    devices it is torch's dropout.
    """
    dropped = round(p * LEVELS)
    # a compiler fuses torch's dropout
    if not dropped or x.device.type != "cpu" or torch.compiler.is_compiling():
        return F.dropout(x, p)
    seed = torch.empty((), dtype=torch.int64).random_().item()
    words = np.random.SFC64(seed).random_raw(-(-x.numel() // 4))
    bits = torch.from_numpy(words.view(np.int16))[: x.numel()].view(x.shape)
    first_kept = dropped - LEVELS // 2
    # 0 or 1; a comparison is slower
    kept = bits.clamp_(first_kept - 1, first_kept).sub_(first_kept - 1)
    return x * kept.to(x.dtype).mul_(LEVELS / (LEVELS - dropped))


class FastDropout(nn.Dropout):
    """`nn.Dropout` that calls `fast_dropout`."""

    def forward(self, input: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
        return fast_dropout(input, self.p) if self.training else input


def attention(
    module: nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    *,
    dropout: float = 0.0,
    scaling: float,
    **kwargs,
) -> tuple[Tensor, None]:
    """Scaled-dot-product attention with `fast_dropout`.

    query, key and value are (B, h, L, e); the mask is True where a key is read, None: all are.
    `dropout` is that of the attention weights. Returns the context, (B, L, h, e), and None.
    """
    not_causal = attention_mask is not None or not module.is_causal
    if not (dropout and not_causal and query.device.type == "cpu") or torch.compiler.is_compiling():
        return sdpa_attention_forward(
            module, query, key, value, attention_mask, dropout=dropout, scaling=scaling, **kwargs
        )
    scores = query * scaling @ key.transpose(-1, -2)
    if attention_mask is not None:
        lowest = torch.finfo(scores.dtype).min
        bias = torch.zeros_like(attention_mask, dtype=scores.dtype)
        scores = scores + bias.masked_fill_(~attention_mask, lowest)
    return (fast_dropout(scores.softmax(-1), dropout) @ value).transpose(1, 2).contiguous(), None


AttentionInterface.register(ATTENTION, attention)
AttentionMaskInterface.register(ATTENTION, sdpa_mask)


def use_fast_dropout(model: nn.Module) -> None:
    """Replace every `nn.Dropout` inside `model` by `FastDropout`, in place."""
    for module in model.modules():
        for name, child in module.named_children():
            if type(child) is nn.Dropout:
                setattr(module, name, FastDropout(child.p).train(child.training))


@contextmanager
def dropout_rate(model: nn.Module, p: float) -> Iterator[None]:
    """Set the rate of every dropout inside `model`, attention's too, to p until the block ends."""
    previous = {module: module.p for module in model.modules() if isinstance(module, nn.Dropout)}
    for module in previous:
        module.p = p
    try:
        yield
    finally:
        for module, rate in previous.items():
            module.p = rate
