"""Does a sentence's vector lean on one token? BeLLM's pilot study (section 2)."""

from collections.abc import Sequence

import torch
from jaxtyping import Float, Int
from torch import Tensor

from cselab.analysis.batches import token_batches
from cselab.errors import DataError, SettingsError, suggest
from cselab.models import evaluating

PIVOTS = ("cls", "last_token")


def token_dependency(
    states: Float[Tensor, "B L d"], mask: Int[Tensor, "B L"], *, pivot: str = "cls"
) -> list[Float[Tensor, " n"]]:
    """Spearman correlation, over the d features, of the pivot token's state with that of each other token, a tensor a
    sentence in token order. Near 1: the pivot says what the token says.

    pivot: "cls" (first token, for BERT) or "last_token" (for decoders). mask: 1 for tokens, 0 for padding, on either side.

    Raises SettingsError for an unknown pivot, DataError for a sentence of fewer than two tokens.
    """
    if pivot not in PIVOTS:
        raise SettingsError(f"unknown pivot {pivot!r}; {suggest(pivot, PIVOTS)}")
    found = []
    for sentence, keep in zip(states.double(), mask.bool(), strict=True):
        tokens = sentence[keep]
        if len(tokens) < 2:
            raise DataError(f"dependency compares a token with others; got a sentence of {len(tokens)}")
        ranks = _average_ranks(tokens)
        ranks = ranks - ranks.mean(1, keepdim=True)
        at = 0 if pivot == "cls" else len(tokens) - 1
        others = torch.arange(len(tokens), device=tokens.device) != at
        found.append(torch.cosine_similarity(ranks[others], ranks[at][None], dim=1))
    return found


def sentence_dependency(encoder, sentences: Sequence[str], *, pivot: str = "cls") -> Float[Tensor, " n"]:
    """Mean of `token_dependency` over a sentence's tokens, of the last layer: one number a sentence, for a box plot.

    encoder: a SentenceEncoder with its tokenizer.
    """
    means = []
    with evaluating(encoder), torch.inference_mode():
        for batch in token_batches(encoder.tokenizer, sentences, encoder.backbone.device):
            states = encoder.backbone(**batch).last_hidden_state
            means += [one.mean() for one in token_dependency(states, batch["attention_mask"], pivot=pivot)]
    return torch.stack(means).float().cpu()


def _average_ranks(rows: Float[Tensor, "n d"]) -> Float[Tensor, "n d"]:
    """Ranks along each row; tied values share the mean of theirs."""
    below = torch.searchsorted(rows.sort(1).values, rows)
    upto = torch.searchsorted(rows.sort(1).values, rows, right=True)
    return (below + upto).double() / 2
