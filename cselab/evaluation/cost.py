"""What inference costs: multiply-adds counted by torch on a model without weights, and sentences a second measured here."""

import time
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, NamedTuple

import torch
from torch.utils.flop_counter import FlopCounterMode
from transformers import AutoModel, PreTrainedConfig

from cselab.models import TwinEncoder

MATRIX_PRODUCTS = ("aten.addmm", "aten.mm")
"""What linear layers call; attention's own products are `aten.bmm`."""


class InferenceCost(NamedTuple):
    """GMACs for one sentence: of the linear layers alone, as the papers print, and with the products inside attention."""

    linear: float
    with_attention: float

    def efficiency(self, score: float) -> float:
        """Score per GMAC, the eta of JTCSE Table VII (linear layers alone, as it has them)."""
        return score / self.linear


def inference_cost(config: PreTrainedConfig, *, length: int = 64, towers: int = 1) -> InferenceCost:
    """Cost of encoding one sentence of `length` tokens with `towers` encoders of this shape; the pooler, which inference
    does not read, is left out. No weights are made: the model stands on torch's meta device."""
    with torch.device("meta"):
        one = _counted(_tower(config), length)
    return InferenceCost(*(towers * count for count in one))


def twin_training_cost(
    config: PreTrainedConfig, *, length: int = 32
) -> Callable[[tuple[int, ...], str], InferenceCost]:
    """A function of (cael, cross_stream): cost of one sentence's forward pass through a twin of this shape as training does it, cross
    streams included, poolers left out. Layers and streams are checked as `TwinEncoder` checks them."""
    with torch.device("meta"):
        towers = _tower(config), _tower(config)

    @cache
    def cost(cael: tuple[int, ...], cross_stream: str = "parallel") -> InferenceCost:
        with torch.device("meta"):
            return _counted(TwinEncoder(*towers, cael=cael, cross_stream=cross_stream).eval(), length)

    return cost


def _tower(config: PreTrainedConfig) -> torch.nn.Module:
    model = AutoModel.from_config(config, attn_implementation="eager").eval()
    if getattr(model, "pooler", None) is not None:
        model.pooler = None
    return model


def _counted(model: torch.nn.Module, length: int) -> InferenceCost:
    ids = torch.zeros(1, length, dtype=torch.int64)
    with torch.no_grad(), FlopCounterMode(display=False) as counter:
        model(input_ids=ids)
    flops = {str(operator): count for operator, count in counter.get_flop_counts()["Global"].items()}
    linear = sum(count for operator, count in flops.items() if operator.startswith(MATRIX_PRODUCTS))
    return InferenceCost(linear / 2e9, sum(flops.values()) / 2e9)


def sentences_per_second(encode: Callable[[list[str]], Any], sentences: Sequence[str], *, repeats: int = 3) -> float:
    """The best of `repeats` passes over all sentences, after a warm-up: tokenising and batching are in it. The result is
    waited for, so that a GPU has finished. Compare speeds of one run on one machine only."""
    sentences, seconds = list(sentences), []
    for _ in range(1 + repeats):
        started = time.perf_counter()
        vectors = encode(sentences)
        vectors[-1].sum().item()
        seconds.append(time.perf_counter() - started)
    return len(sentences) / min(seconds[1:])
