"""Encode sentences: sorted by length, in batches of limited tokens, returned in their order."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Protocol, runtime_checkable

import torch
from jaxtyping import Float
from torch import Tensor, nn
from transformers import PreTrainedTokenizerBase

from cselab.errors import DataError
from cselab.models.backbone import longest_input


@runtime_checkable
class Encoder(Protocol):
    """Anything that maps n sentences to vectors, (n, d)."""

    def encode(self, sentences: list[str]) -> Any:
        """One vector per sentence, in their order."""


def encode(
    encoder: nn.Module,
    sentences: Sequence[str],
    *,
    max_length: int | None = None,
    tokens_per_batch: int | None = None,
) -> Float[Tensor, "n d"]:
    """Embeddings of `sentences` in their order, float32 on the CPU.

    The result has no gradient; a loss may use it as a constant (a teacher's vectors).

    Args:
        encoder: A module with `embed(batch) -> (B, d)`, `tokenizer` and `backbones`. It runs in
            evaluation mode; afterwards each module is in its previous mode. No random number is
            drawn.
        sentences: n strings.
        max_length: Tokens; longer sentences are truncated. None is the backbone's maximum.
        tokens_per_batch: Padded tokens per batch, which bounds the memory; None: 8192 on a GPU, and
            on a processor 2048, whose states stay in its cache.

    Returns:
        The embeddings, (n, d).

    Raises:
        DataError: For a single string, an entry that is not a string, an encoder without a
            tokenizer, or a max_length that the special tokens alone fill.

    Examples:
        >>> import torch
        >>> from cselab import load
        >>> from cselab.models import encode
        >>> encoder = load("tiny-bert")
        >>> vectors = encode(encoder, ["A dog sleeps.", "A dog sleeps.", "Gold is expensive."])
        >>> torch.cosine_similarity(vectors[:1], vectors) > 0.9
        tensor([ True,  True, False])
    """
    if isinstance(sentences, str):
        raise DataError(
            "encode takes a list of sentences, got one string; wrap it: encode([sentence])"
        )
    for i, sentence in enumerate(sentences):
        if not isinstance(sentence, str):
            raise DataError(
                f"encode takes strings, got {type(sentence).__name__} at position {i}: "
                f"{sentence!r:.60}"
            )
    model = encoder.backbones[0]
    if not sentences:
        return torch.empty(0, model.config.hidden_size)
    tokenizer = tokenizer_of(encoder)
    special = tokenizer.num_special_tokens_to_add()
    if max_length is not None and max_length <= special:
        raise DataError(
            f"max_length={max_length} leaves no room for a word beside {special} special tokens; "
            "give more"
        )
    limit = min(max_length or longest_input(model), longest_input(model))
    ids = tokenizer(
        list(sentences), truncation=True, max_length=limit, return_attention_mask=False
    )["input_ids"]
    # longest first: memory runs out in the first batch or never
    order = sorted(range(len(ids)), key=lambda i: -len(ids[i]))
    tokens_per_batch = tokens_per_batch or (2048 if model.device.type == "cpu" else 8192)
    parts = []
    with evaluating(encoder), torch.inference_mode():
        for chunk in _batches(order, ids, tokens_per_batch):
            batch = tokenizer.pad({"input_ids": [ids[i] for i in chunk]}, return_tensors="pt")
            batch = {key: batch[key].to(model.device) for key in ("input_ids", "attention_mask")}
            parts.append(encoder.embed(batch).float().cpu())
    # outside inference mode, whose tensors autograd refuses
    return torch.cat(parts)[torch.tensor(order).argsort()]


def tokenizer_of(encoder: nn.Module) -> PreTrainedTokenizerBase:
    """The tokenizer of an encoder. Raises DataError for one that was built without it."""
    if encoder.tokenizer is None:
        raise DataError(
            "this encoder was built without a tokenizer; pass tokenizer= when you build it"
        )
    return encoder.tokenizer


@contextmanager
def evaluating(module: nn.Module) -> Iterator[None]:
    """Put `module` into evaluation mode until the block ends.

    Restores the mode of every part: a frozen part may have been in evaluation mode before.

    Examples:
        >>> from cselab import load
        >>> from cselab.models import evaluating
        >>> encoder = load("tiny-bert").train()
        >>> with evaluating(encoder):
        ...     print(encoder.training)
        False
        >>> encoder.training
        True
    """
    modes = [(part, part.training) for part in module.modules()]
    module.eval()
    try:
        yield
    finally:
        for part, training in modes:
            part.training = training


def _batches(order: list[int], ids: list[list[int]], tokens_per_batch: int) -> Iterator[list[int]]:
    start = 0
    while start < len(order):
        size = max(1, tokens_per_batch // len(ids[order[start]]))
        yield order[start : start + size]
        start += size
