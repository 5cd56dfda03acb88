"""Which tokens a cosine rests on: the cosine of two sentences when a token cannot be read."""

from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from cselab.models import SentenceEncoder, TwinEncoder, evaluating


class CosineByToken(NamedTuple):
    """Cosine of two sentences, and by how much it falls without each token.

    cosine: of the whole sentences.
    first, second: `cosine - cosine without the token`, one for each token of a sentence; NaN for
        the first and last one, [CLS] and [SEP].
    """

    cosine: float
    first: Float[Tensor, " L"]
    second: Float[Tensor, " M"]


def cosine_by_token(
    encoder: SentenceEncoder | TwinEncoder, first: str, second: str, *, max_length: int = 64
) -> CosineByToken:
    """Hide one token after the other from both attention and pooling, and take the cosine again.

    Occlusion, as in Zeiler and Fergus 2014 (https://arxiv.org/abs/1311.2901, section 4.2). The
    other tokens keep their positions. A positive number: the token makes the sentences more alike.

    >>> from cselab.models import SentenceEncoder
    >>> encoder = SentenceEncoder.from_pretrained("data/backbones/tiny-bert")  # doctest: +SKIP
    >>> cosine_by_token(encoder, "a dog runs", "a dog sleeps").cosine  # doctest: +SKIP
    0.87
    """
    vectors = [_without_each_token(encoder, text, max_length) for text in (first, second)]
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
    ids = encoder.tokenizer(text, truncation=True, max_length=max_length, return_tensors="pt")
    ids = ids["input_ids"].to(encoder.backbones[0].device)
    length = ids.shape[1]
    mask = torch.ones(length + 1, length, dtype=torch.long, device=ids.device)
    mask[torch.arange(1, length + 1), torch.arange(length)] = 0
    with evaluating(encoder):
        return encoder.embed(
            {"input_ids": ids.expand(length + 1, -1), "attention_mask": mask}
        ).cpu()
