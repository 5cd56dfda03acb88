"""Cost of inference and of training: multiply-adds, counted on a model without weights."""

import copy
from collections.abc import Callable
from functools import cache
from typing import NamedTuple

import torch
from torch.utils.flop_counter import FlopCounterMode
from transformers import AutoModel, PreTrainedConfig

from cselab.models import TwinEncoder

MATRIX_PRODUCTS = ("aten.addmm", "aten.mm")
"""Operators of linear layers; the products inside attention are `aten.bmm`."""


class InferenceCost(NamedTuple):
    """GMACs of one sentence: of linear layers only, as in the papers, and with the products inside
    attention."""

    linear: float
    with_attention: float


def inference_cost(config: PreTrainedConfig, *, length: int = 64, towers: int = 1) -> InferenceCost:
    """Cost of encoding one sentence of `length` tokens with `towers` encoders of this shape.

    The pooler is not counted, for inference does not read it.

    Examples:
        >>> from transformers import BertConfig
        >>> from cselab.evaluation import inference_cost
        >>> twin = inference_cost(BertConfig(), towers=2)  # BERT-base; JTCSE prints 10.9
        >>> f"{twin.linear:.2f} {twin.with_attention:.2f}"
        '10.87 11.02'
    """
    with torch.device("meta"):
        tower = _count(_tower(config), length)
    return InferenceCost(*(towers * gmacs for gmacs in tower))


def twin_training_cost(
    config: PreTrainedConfig, *, length: int = 32
) -> Callable[[tuple[int, ...], str], InferenceCost]:
    """Cost of one sentence's forward pass in training a twin, as a function of its CAELs.

    Cross streams are counted, poolers are not.

    Examples:
        >>> from transformers import BertConfig
        >>> from cselab.evaluation import twin_training_cost
        >>> cost = twin_training_cost(BertConfig())
        >>> f"{cost(()).linear:.2f}, with a CAEL at layer 11 {cost((11,)).linear:.2f} GMACs"
        '5.07, with a CAEL at layer 11 5.16 GMACs'
    """
    with torch.device("meta"):
        towers = _tower(config), _tower(config)

    @cache
    def cost(cael: tuple[int, ...], cross_stream: str = "parallel") -> InferenceCost:
        with torch.device("meta"):
            twin = TwinEncoder(*towers, cael=cael, cross_stream=cross_stream)
            return _count(twin.eval(), length)

    return cost


def _tower(config: PreTrainedConfig) -> torch.nn.Module:
    # a copy, for from_config writes the attention that it is given into the config
    model = AutoModel.from_config(copy.deepcopy(config), attn_implementation="eager").eval()
    if getattr(model, "pooler", None) is not None:
        model.pooler = None
    return model


def _count(model: torch.nn.Module, length: int) -> InferenceCost:
    ids = torch.zeros(1, length, dtype=torch.int64)
    with torch.no_grad(), FlopCounterMode(display=False) as counter:
        model(input_ids=ids)
    flops = counter.get_flop_counts()["Global"]
    linear = sum(flops[operator] for operator in flops if str(operator).startswith(MATRIX_PRODUCTS))
    return InferenceCost(linear / 2e9, sum(flops.values()) / 2e9)
