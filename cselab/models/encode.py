"""Encode sentences: sorted by length, in batches of limited tokens, returned in their order."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, Protocol, runtime_checkable

import torch
from jaxtyping import Float
from torch import Tensor, nn
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from cselab.errors import DataError
from cselab.models.backbone import longest_input
from cselab.models.texts import as_sentences, flattened, warn_of_lost_text
from cselab.models.tokenizer import longest_text

SENTENCES_PER_BATCH = 64
"""Of `token_batches`."""


@runtime_checkable
class Encoder(Protocol):
    """Anything that maps n sentences to vectors, (n, d)."""

    def encode(self, sentences: list[str]) -> Any:
        """One vector per sentence, in their order."""


def encode(
    encoder: nn.Module,
    sentences: Iterable[str],
    *,
    max_length: int | None = None,
    tokens_per_batch: int | None = None,
) -> Float[Tensor, "n d"]:
    """Embeddings of `sentences` (any iterable of strings) in their order, float32 on the CPU.

    The result has no gradient; a loss may use it as a constant (a teacher's vectors). No random
    number is drawn, and afterwards each module is in its previous mode.

    Args:
        encoder: A module with `embed(batch) -> (B, d)`, `tokenizer` and `backbones`.
        max_length: Tokens; longer sentences are truncated. None: as many as `longest_text` says.
        tokens_per_batch: Padded tokens per batch, which bounds the memory; None: 8192 on a GPU, and
            on a processor 2048, whose states stay in its cache.

    Raises:
        DataError: As `as_sentences`, for an encoder without a tokenizer, or a max_length that the
            special tokens alone fill.

    Warns:
        UserWarning: Once, if many tokens are unknown to the tokenizer or most sentences are cut.

    Examples:
        >>> import torch
        >>> from cselab import load
        >>> from cselab.models import encode
        >>> encoder = load("tiny-bert")
        >>> vectors = encode(encoder, ["A dog sleeps.", "A dog sleeps.", "Gold is expensive."])
        >>> torch.cosine_similarity(vectors[:1], vectors) > 0.9
        tensor([ True,  True, False])
    """
    sentences, model = as_sentences(sentences), encoder.backbones[0]
    if not sentences:
        return torch.empty(0, model.config.hidden_size)
    tokenizer = tokenizer_of(encoder)
    special = tokenizer.num_special_tokens_to_add()
    limit = min(max_length or longest_text(model, tokenizer), longest_input(model))
    if limit <= special:
        raise DataError(f"max_length={limit} is filled by {special} special tokens; give more")
    ids = tokenizer(sentences, truncation=True, max_length=limit, return_attention_mask=False)[
        "input_ids"
    ]
    warn_of_lost_text(flattened(ids), tokenizer, limit, "the text to encode")
    # longest first: memory runs out in the first batch or never
    order = sorted(range(len(ids)), key=lambda i: -len(ids[i]))
    tokens_per_batch = tokens_per_batch or (2048 if model.device.type == "cpu" else 8192)
    parts, start = [], 0
    with evaluating(encoder), torch.inference_mode():
        while start < len(order):
            size = max(1, tokens_per_batch // len(ids[order[start]]))
            chunk = order[start : start + size]
            start += size
            batch = tokenizer.pad(
                {"input_ids": [ids[i] for i in chunk]}, padding_side="right", return_tensors="pt"
            )
            batch = {key: batch[key].to(model.device) for key in ("input_ids", "attention_mask")}
            parts.append(encoder.embed(batch).float().cpu())
    # outside inference mode, whose tensors autograd refuses
    return torch.cat(parts)[torch.tensor(order).argsort()]


def tokenizer_of(encoder: nn.Module) -> PreTrainedTokenizerBase:
    """The tokenizer of an encoder. Raises DataError for one that was built without it."""
    if encoder.tokenizer is None:
        raise DataError("this encoder was built without a tokenizer; build it with tokenizer=")
    return encoder.tokenizer


@contextmanager
def evaluating(module: nn.Module) -> Iterator[None]:
    """Put `module` into evaluation mode until the block ends.

    Restores the mode of every part: a frozen part may have been in evaluation mode before.
    """
    modes = [(part, part.training) for part in module.modules()]
    module.eval()
    try:
        yield
    finally:
        for part, training in modes:
            part.training = training


def token_batches(
    tokenizer: PreTrainedTokenizerBase,
    sentences: Iterable[str],
    model: PreTrainedModel,
    *,
    max_length: int | None = None,
) -> Iterator[dict[str, Tensor]]:
    """`input_ids` and `attention_mask` of 64 sentences at a time, in order, for an analysis.

    Sentences are truncated to `max_length` tokens; None: as many as `longest_text` says. Raises
    DataError as `as_sentences`, and without a sentence.
    """
    sentences = as_sentences(sentences, "the analysis")
    if not sentences:
        raise DataError("the analysis takes at least one sentence, got none")
    for start in range(0, len(sentences), SENTENCES_PER_BATCH):
        batch = tokenizer(
            sentences[start : start + SENTENCES_PER_BATCH],
            padding=True,
            padding_side="right",
            truncation=True,
            max_length=max_length or longest_text(model, tokenizer),
            return_tensors="pt",
            return_token_type_ids=False,
        ).to(model.device)
        yield {name: batch[name] for name in ("input_ids", "attention_mask")}
