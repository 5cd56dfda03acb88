"""What inference costs: multiply-adds counted by torch on a model without weights, and sentences a second measured here."""

import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch
from torch.utils.flop_counter import FlopCounterMode
from transformers import AutoModel, PreTrainedConfig

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
        model = AutoModel.from_config(config, attn_implementation="eager").eval()
        ids = torch.zeros(1, length, dtype=torch.int64)
        if getattr(model, "pooler", None) is not None:
            model.pooler = None
        with torch.no_grad(), FlopCounterMode(display=False) as counter:
            model(input_ids=ids)
    flops = {str(operator): count for operator, count in counter.get_flop_counts()["Global"].items()}
    linear = sum(count for operator, count in flops.items() if operator.startswith(MATRIX_PRODUCTS))
    return InferenceCost(*(towers * count / 2e9 for count in (linear, sum(flops.values()))))


def sentences_per_second(encode: Callable[[list[str]], Any], sentences: Sequence[str], *, repeats: int = 3) -> float:
    """The best of `repeats` passes over all sentences, after a warm-up: tokenising and batching are in it. The result is
    waited for, so that a GPU has finished. Compare speeds of one run on one machine only."""
    sentences, best = list(sentences), float("inf")
    for _ in range(1 + repeats):
        started = time.perf_counter()
        vectors = encode(sentences)
        vectors[-1].sum().item()
        best = min(best, time.perf_counter() - started)
    return len(sentences) / best
