"""The step of a training."""

import random
from dataclasses import dataclass

import torch
from jaxtyping import Int
from torch import Tensor


@dataclass(frozen=True)
class StepContext:
    """The step of a training, as a loss sees it.

    Attributes:
        coin: A fair coin (JTCSE Eq. 12, https://arxiv.org/abs/2505.02366).
        ids: (N,), equal for equal sentences of the batch: duplicates are no negatives of each
            other.

    Examples:
        >>> from cselab.methods import StepContext
        >>> [StepContext.at(seed=1, step=step).coin for step in range(4)]
        [False, True, False, True]
    """

    seed: int
    step: int
    coin: bool
    ids: Int[Tensor, " N"] | None = None

    @classmethod
    def at(cls, seed: int, step: int, ids: Int[Tensor, " N"] | None = None) -> "StepContext":
        """The same (seed, step) gives the same coin on every process and in every replay."""
        coin = random.Random(f"coin {seed} {step}").random() < 0.5
        return cls(seed=seed, step=step, coin=coin, ids=ids)

    def generator(self) -> torch.Generator:
        """Random numbers of this step that every process and every replay draws alike."""
        seed = random.Random(f"draws {self.seed} {self.step}").getrandbits(63)
        return torch.Generator().manual_seed(seed)
