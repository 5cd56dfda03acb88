"""Norms of sentence vectors: fixed by LayerNorm, or changed by a modulus loss.

TNCSE, https://arxiv.org/abs/2503.12739; JTCSE section III-C, https://arxiv.org/abs/2505.02366.
"""

from collections.abc import Iterable
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from cselab.analysis.batches import token_batches
from cselab.models import evaluating


class Norms(NamedTuple):
    """Euclidean norms of the vectors of n sentences.

    Attributes:
        cls: Norms of [CLS] in the last layer, h^L, (n,).
        pooled: Norms of the pooler's output, h^P, (n,); None without a pooler.
    """

    cls: Float[Tensor, " n"]
    pooled: Float[Tensor, " n"] | None


def vector_norms(
    tower: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, sentences: Iterable[str]
) -> Norms:
    """Norms of the vectors of each sentence, in order, with the tower in evaluation mode.

    Args:
        tower: A BERT or RoBERTa of transformers.
        tokenizer: The tower's.
        sentences: At least one sentence.

    Examples:
        >>> import cselab
        >>> from cselab.analysis import vector_norms
        >>> encoder = cselab.load("tiny-bert")
        >>> norms = vector_norms(encoder.backbone, encoder.tokenizer, ["A dog runs.", "It rains."])
        >>> norms.cls.shape, norms.pooled.shape
        (torch.Size([2]), torch.Size([2]))
    """
    cls, pooled = [], []
    with evaluating(tower), torch.inference_mode():
        for batch in token_batches(tokenizer, sentences, tower):
            output = tower(**batch)
            cls.append(output.last_hidden_state[:, 0].norm(dim=-1).cpu())
            if output.pooler_output is not None:
                pooled.append(output.pooler_output.norm(dim=-1).cpu())
    return Norms(torch.cat(cls), torch.cat(pooled) if pooled else None)
