"""Dependency of tokens on the turning point, BeLLM's pilot study.

Section 2 of https://arxiv.org/abs/2311.05296. The turning point (BeLLM: pivot token) is the token
whose state represents the sentence.
"""

from collections.abc import Iterable

import torch
from jaxtyping import Float, Int
from scipy.stats import rankdata
from torch import Tensor

from cselab.errors import DataError, SettingsError, suggest
from cselab.models import SentenceEncoder, evaluating
from cselab.models.encode import token_batches, tokenizer_of

TURNING_POINTS = ("cls", "last_token")


def token_dependency(
    states: Float[Tensor, "B L d"], mask: Int[Tensor, "B L"], *, turning_point: str = "cls"
) -> list[Float[Tensor, " n"]]:
    """Spearman correlation, over d features, of the turning point's state with each other token's.

    BeLLM section 2, https://arxiv.org/abs/2311.05296. Near 1, the two states are almost the same.

    Args:
        mask: 1 for tokens, 0 for padding, on either side.
        turning_point: "cls" (first token, for BERT) or "last_token" (for decoders).

    Returns:
        One tensor per sentence, in token order.

    Raises:
        SettingsError: For an unknown turning point.
        DataError: For a sentence of fewer than two tokens.

    Examples:
        >>> import torch
        >>> from cselab.workbook.analysis import token_dependency
        >>> states = torch.tensor([[[1.0, 2.0, 3.0], [2.0, 4.0, 9.0], [3.0, 2.0, 1.0]]])
        >>> [found] = token_dependency(states, torch.ones(1, 3, dtype=torch.long))
        >>> [round(correlation, 6) for correlation in found.tolist()]
        [1.0, -1.0]
    """
    if turning_point not in TURNING_POINTS:
        hint = suggest(turning_point, TURNING_POINTS)
        raise SettingsError(f"unknown turning point {turning_point!r}; {hint}")
    correlations = []
    for sentence, keep in zip(states.double(), mask.bool(), strict=True):
        tokens = sentence[keep]
        if len(tokens) < 2:
            raise DataError(f"dependency needs two tokens; got a sentence of {len(tokens)}")
        ranks = torch.from_numpy(rankdata(tokens.cpu(), axis=1))  # ties get the mean of their ranks
        ranks = ranks - ranks.mean(1, keepdim=True)
        at = 0 if turning_point == "cls" else len(tokens) - 1
        others = torch.arange(len(tokens)) != at
        correlations.append(torch.cosine_similarity(ranks[others], ranks[at][None], dim=1))
    return correlations


def sentence_dependency(
    encoder: SentenceEncoder, sentences: Iterable[str], *, turning_point: str = "cls"
) -> Float[Tensor, " n"]:
    """Mean of `token_dependency` over the tokens of each sentence, in the last layer.

    The sentences stand alone, without the encoder's prompt.

    Raises:
        SettingsError, DataError: As `token_dependency`.

    Examples:
        >>> import cselab
        >>> from cselab.workbook.analysis import sentence_dependency
        >>> encoder = cselab.load("tiny-llama")
        >>> sentences = ["A dog runs.", "It rains."]
        >>> sentence_dependency(encoder, sentences, turning_point="last_token").shape
        torch.Size([2])
    """
    means = []
    with evaluating(encoder), torch.inference_mode():
        for batch in token_batches(tokenizer_of(encoder), sentences, encoder.backbone):
            states = encoder.backbone(**batch).last_hidden_state
            mask = batch["attention_mask"]
            rows = token_dependency(states, mask, turning_point=turning_point)
            means += [row.mean() for row in rows]
    return torch.stack(means).float()
