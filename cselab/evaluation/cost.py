"""Cost of inference: multiply-adds, counted on a model without weights, and measured speed."""

import copy
import time
from collections.abc import Callable, Iterable
from functools import cache
from typing import Any, NamedTuple

import torch
from torch.utils.flop_counter import FlopCounterMode
from transformers import AutoModel, PreTrainedConfig

from cselab.errors import DataError, ModelError
from cselab.models import Ensemble, TwinEncoder
from cselab.models.encode import Encoder
from cselab.models.texts import as_sentences

MATRIX_PRODUCTS = ("aten.addmm", "aten.mm")
"""Operators of linear layers; the products inside attention are `aten.bmm`."""


class InferenceCost(NamedTuple):
    """GMACs of one sentence: of linear layers only, as in the papers, and with the products inside
    attention."""

    linear: float
    with_attention: float

    def efficiency(self, score: float) -> float:
        """Score per linear GMAC, the eta of JTCSE Table VII, https://arxiv.org/abs/2505.02366."""
        return score / self.linear


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


def encoder_cost(encoder: Encoder, *, length: int = 64) -> InferenceCost:
    """Cost of encoding one sentence of `length` tokens (with a prompt's), of all models it runs.

    Operations on the sentence's one vector (pooler, weights of a sum) are left out: of BERT-base,
    below 0.1 %.

    Args:
        encoder: A single tower, a twin, or an ensemble, or a training's result with one inside.

    Raises:
        ModelError: For an encoder that runs no transformers model, or does not show it.

    Examples:
        >>> from cselab import load
        >>> from cselab.evaluation import encoder_cost
        >>> from cselab.models import Ensemble
        >>> members = [load("tiny-bert"), load("plain-bert")]
        >>> one, six = encoder_cost(members[0]), encoder_cost(Ensemble(3 * members))
        >>> round(six.linear / one.linear)
        6
    """
    encoder = getattr(encoder, "encoder", encoder)
    if isinstance(encoder, Ensemble):
        return _sum(encoder_cost(member, length=length) for member in encoder.members)
    if isinstance(encoder, TwinEncoder) and encoder.is_fused:
        shape = encoder.tower_i.config
        return twin_training_cost(shape, length=length)(encoder.cael, encoder.cross_stream)
    models = getattr(encoder, "backbones", None)
    if models is None:
        raise ModelError(
            f"a {type(encoder).__name__} shows no model to count; give a single tower, a twin or "
            "an ensemble"
        )
    return _sum(inference_cost(model.config, length=length) for model in models)


def _sum(costs: Iterable[InferenceCost]) -> InferenceCost:
    return InferenceCost(*(sum(parts) for parts in zip(*costs, strict=True)))


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


def sentences_per_second(
    encode: Callable[[list[str]], Any], sentences: Iterable[str], *, repeats: int = 3
) -> float:
    """Speed of the fastest of `repeats` passes over all sentences, after a warm-up.

    Includes tokenising and batching, and waits for a GPU to finish. Compare only speeds of one run
    on one machine.

    Raises:
        DataError: Without a sentence, and for one that is no text.

    Examples:
        >>> from cselab import load
        >>> from cselab.evaluation import sentences_per_second
        >>> speed = sentences_per_second(load("tiny-bert").encode, 8 * ["A dog runs."], repeats=1)
        >>> speed > 1
        True
    """
    sentences, seconds = as_sentences(sentences, "sentences_per_second"), []
    if not sentences:
        raise DataError("sentences_per_second takes at least one sentence, got none")
    for _ in range(1 + repeats):
        started = time.perf_counter()
        vectors = encode(sentences)
        vectors[-1].sum().item()
        seconds.append(time.perf_counter() - started)
    return len(sentences) / min(seconds[1:])
