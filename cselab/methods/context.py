"""What a loss may know about the step it is in."""

import random
from dataclasses import dataclass

import torch


@dataclass(frozen=True)
class StepContext:
    """Seed and number of the step, and a fair coin (JTCSE Eq. 12)."""

    seed: int
    step: int
    coin: bool

    @classmethod
    def at(cls, seed: int, step: int) -> "StepContext":
        """The same (seed, step) gives the same coin on every process and in every replay."""
        return cls(seed=seed, step=step, coin=random.Random(f"coin {seed} {step}").random() < 0.5)

    def generator(self) -> torch.Generator:
        """Random numbers of this step that every process and every replay draws alike."""
        return torch.Generator().manual_seed(random.Random(f"draws {self.seed} {self.step}").getrandbits(63))
