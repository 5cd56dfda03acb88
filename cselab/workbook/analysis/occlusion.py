"""Occlusion: the cosine of two sentences when a token of theirs cannot be read."""

from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from cselab.errors import ModelError
from cselab.models import SentenceEncoder, TwinEncoder, evaluating
from cselab.models.encode import tokenizer_of
from cselab.models.texts import as_sentences


class CosineByToken(NamedTuple):
    """Cosine of two sentences, and its fall without each token of the first and of the second.

    A fall is `cosine - cosine without the token`; NaN for [CLS] and [SEP].
    """

    cosine: float
    first: Float[Tensor, " L"]
    second: Float[Tensor, " M"]


def cosine_by_token(
    encoder: SentenceEncoder | TwinEncoder, first: str, second: str, *, max_length: int = 64
) -> CosineByToken:
    """Hide one token after the other from both attention and pooling, and take the cosine again.

    Occlusion, as in Zeiler and Fergus 2014 (https://arxiv.org/abs/1311.2901, section 4.2). The
    other tokens keep their positions.

    Args:
        max_length: Tokens at which a sentence is cut.

    Returns:
        A positive fall: the token makes the sentences more alike.

    Raises:
        DataError: For an encoder without a tokenizer, and a sentence that is no string.
        ModelError: For an encoder with a prompt.

    Examples:
        >>> import cselab
        >>> from cselab.workbook.analysis import cosine_by_token
        >>> found = cosine_by_token(cselab.load("tiny-bert"), "A dog runs", "A dog sleeps")
        >>> falls = found.first[1:-1].tolist()  # of "a", "dog", "runs"
        >>> falls[1] > falls[2]  # the word that both have makes them alike
        True
    """
    if prompt := getattr(encoder, "prompt", ""):
        raise ModelError(f"this encoder has the prompt {prompt!r}; use one without a prompt")
    texts = as_sentences((first, second), "cosine_by_token")
    vectors = [_without_each_token(encoder, text, max_length) for text in texts]
    whole = [rows[0] for rows in vectors]
    cosine = torch.cosine_similarity(*whole, dim=0)
    falls = []
    for rows, other in zip(vectors, reversed(whole), strict=True):
        fall = cosine - torch.cosine_similarity(rows[1:], other[None], dim=1)
        fall[[0, -1]] = torch.nan
        falls.append(fall)
    return CosineByToken(cosine.item(), *falls)


@torch.inference_mode()
def _without_each_token(
    encoder: SentenceEncoder | TwinEncoder, text: str, max_length: int
) -> Float[Tensor, "rows d"]:
    """Vectors of a sentence of L tokens: whole, then without each token."""
    tokenizer = tokenizer_of(encoder)
    ids = tokenizer(text, truncation=True, max_length=max_length, return_tensors="pt")["input_ids"]
    ids = ids.to(encoder.backbones[0].device)
    length = ids.shape[1]
    mask = torch.ones(length + 1, length, dtype=torch.long, device=ids.device)
    mask[torch.arange(1, length + 1), torch.arange(length)] = 0
    with evaluating(encoder):
        rows = ids.expand(length + 1, -1)
        return encoder.embed({"input_ids": rows, "attention_mask": mask}).cpu()
