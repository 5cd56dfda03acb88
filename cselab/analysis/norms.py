"""Lengths of a sentence's vectors: what LayerNorm fixes, and what a modulus loss can move (TNCSE, JTCSE section III-C)."""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from cselab.analysis.batches import token_batches
from cselab.models import evaluating


class Norms(NamedTuple):
    """Euclidean lengths, one a sentence: of [CLS] of the last layer (h^L), and of the pooler's output (h^P), None without one."""

    cls: Float[Tensor, " n"]
    pooled: Float[Tensor, " n"] | None


def vector_norms(tower: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, sentences: Sequence[str]) -> Norms:
    """Of each sentence, in order, in evaluation mode."""
    cls, pooled = [], []
    with evaluating(tower), torch.inference_mode():
        for batch in token_batches(tokenizer, sentences, tower.device):
            output = tower(**batch)
            cls.append(output.last_hidden_state[:, 0].norm(dim=-1).cpu())
            if output.pooler_output is not None:
                pooled.append(output.pooler_output.norm(dim=-1).cpu())
    return Norms(torch.cat(cls), torch.cat(pooled) if pooled else None)
