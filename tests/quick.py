"""What tests of whole runs share: a profile of trainings that take a moment."""

import functools
import gc

import torch

from cselab.data.settings import DataConfig, RoundTrips
from cselab.experiments.profiles import SMALL_DECODER, Profile

QUICK = Profile(
    data=DataConfig(sentences=60, dev_pairs=12, synthetic_pairs=40, triplets=40),
    everywhere={
        **SMALL_DECODER,
        "caels": 2,
        "steps": 2,
        "batch_size": 8,
        "eval_every": 2,
        "mode": "pair",
        "pivots": ("fr", "ru", "nl"),
        "lora_rank": 4,
        "group_size": 2,  # of whitened features: the random backbones are 32 wide
    },
    roles={"single": {"round_trips": RoundTrips(pivot="fr", mode="pair")}},
)
"""Give it a name in `cselab.experiments.PROFILES`, and a small backbone."""


@functools.cache
def forget_imports() -> None:
    """Keep what is imported out of garbage collections: accelerate does one after each training,
    which takes longer than the training."""
    gc.collect()
    gc.freeze()


def weights(trained) -> torch.Tensor:
    """All parameters of an encoder, or of what `train` gives, in one row."""
    encoder = getattr(trained, "encoder", trained)
    return torch.cat([p.detach().flatten() for p in encoder.parameters()])


def same_weights(one, other) -> bool:
    """Whether two encoders have equal parameters, to the last digit."""
    return torch.equal(weights(one), weights(other))
