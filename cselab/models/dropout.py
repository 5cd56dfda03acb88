"""Dropout that a CPU can afford: torch draws one random number an element, one after the other, and that is up to half of a step
of a small model."""

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

LEVELS = 2**16


class FastDropout(nn.Dropout):
    """`nn.Dropout` whose mask on a CPU takes one draw of 64 bits for four elements; elsewhere it is torch's own.

    The probability is rounded to a 65,536th and the rest is scaled by exactly its inverse, so the mean stays. Draws come from
    torch's default generator: seeds, replays and resumed runs work as with torch's, with other masks.
    """

    def forward(self, input: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
        dropped = round(self.p * LEVELS)
        ours = self.training and dropped and input.device.type == "cpu" and not self.inplace
        if not ours or torch.compiler.is_compiling():  # a compiler fuses torch's own
            return F.dropout(input, self.p, self.training, self.inplace)
        draws = torch.empty(-(-input.numel() // 4), dtype=torch.int64).random_(-(2**63), None)
        bits = draws.view(torch.int16)[: input.numel()].view(input.shape)
        keep = (bits >= dropped - LEVELS // 2).to(input.dtype)
        return input * keep.mul_(LEVELS / (LEVELS - dropped))


def use_fast_dropout(model: nn.Module) -> None:
    """Replaces every `nn.Dropout` inside `model`, in place; attention's own dropout, drawn inside its kernel, stays."""
    for module in model.modules():
        for name, child in module.named_children():
            if type(child) is nn.Dropout:
                setattr(module, name, FastDropout(child.p, child.inplace).train(child.training))
