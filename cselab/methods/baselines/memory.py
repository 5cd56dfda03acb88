"""Memory between steps: an encoder that follows the trained one slowly, and the last vectors."""

import copy

import torch
from jaxtyping import Float
from torch import Tensor, nn

from cselab.models.encode import evaluating


class Projected(nn.Module):
    """`forward(batch)`: the vectors of an encoder through a head."""

    def __init__(self, encoder: nn.Module, head: nn.Module):
        super().__init__()
        self.encoder, self.head = encoder, head

    def forward(self, batch: dict[str, Tensor]) -> Float[Tensor, "B d"]:
        return self.head(self.encoder.embed(batch))


class Momentum(nn.Module):
    """A copy of `encoder` that takes no gradient and follows it by `update`: θ' ← m θ' + (1 − m) θ.

    MoCo, https://arxiv.org/abs/1911.05722; ESimCSE, https://arxiv.org/abs/2109.04380.
    """

    def __init__(self, encoder: nn.Module, momentum: float):
        super().__init__()
        self.copy = copy.deepcopy(encoder).requires_grad_(False)
        self.momentum = momentum

    def forward(self, batch: dict[str, Tensor]) -> Float[Tensor, "B d"]:
        """Vectors without dropout and without a gradient."""
        with torch.no_grad(), evaluating(self):
            return self.copy(batch)

    @torch.no_grad()
    def update(self, encoder: nn.Module) -> None:
        """One step towards `encoder`, after the optimiser's."""
        for slow, fast in zip(self.copy.parameters(), encoder.parameters(), strict=True):
            slow.lerp_(fast.detach(), 1 - self.momentum)


class Queue(nn.Module):
    """The last `size` vectors of width `width`, oldest first; part of a checkpoint."""

    def __init__(self, size: int, width: int):
        super().__init__()
        self.register_buffer("kept", torch.zeros(size, width))
        self.register_buffer("filled", torch.zeros((), dtype=torch.long))

    def rows(self) -> Float[Tensor, "Q d"]:
        """The vectors so far, oldest first."""
        return self.kept[len(self.kept) - int(self.filled) :]

    @torch.no_grad()
    def add(self, rows: Float[Tensor, "N d"]) -> None:
        """The rows come last, the oldest go."""
        size = len(self.kept)
        self.kept.copy_(torch.cat([self.kept, rows.detach().to(self.kept)])[-size:])
        self.filled.copy_(torch.clamp(self.filled + len(rows), max=size))
