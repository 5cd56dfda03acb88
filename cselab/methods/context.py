"""What a loss may know about the step it is in."""

import random
from dataclasses import dataclass

import torch
from jaxtyping import Int
from torch import Tensor


@dataclass(frozen=True)
class StepContext:
    """Seed and number of the step, a fair coin (JTCSE Eq. 12), and which sentences are equal.

    ids: (N,), equal for equal sentences of the batch: duplicates are no negatives of each other.
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
