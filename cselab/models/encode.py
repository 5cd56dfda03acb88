"""Sentences to vectors: sorted by length, batched by a token budget, padded to the batch, order restored."""

from collections.abc import Iterator, Sequence

import torch
from jaxtyping import Float
from torch import Tensor, nn

from cselab.errors import DataError
from cselab.models.backbone import longest_input


@torch.inference_mode()
def encode(
    encoder: nn.Module, sentences: Sequence[str], *, max_length: int | None = None, tokens_per_batch: int = 8192
) -> Float[Tensor, "n d"]:
    """Embeddings of `sentences` in their order, float32 on the CPU.

    encoder: has `embed(batch) -> (B, d)`, `tokenizer` and `backbones`. It runs in evaluation mode and is left in the mode it
        was in; no random number is drawn.
    max_length: longer sentences are cut; None is as long as the backbone reads.
    tokens_per_batch: padded tokens a batch, the memory knob.

    Raises DataError for a single string, or an entry that is not a string.
    """
    if isinstance(sentences, str):
        raise DataError("encode takes a list of sentences, got one string; wrap it: encode([sentence])")
    for i, sentence in enumerate(sentences):
        if not isinstance(sentence, str):
            raise DataError(f"encode takes strings, got {type(sentence).__name__} at position {i}: {sentence!r:.60}")
    model = encoder.backbones[0]
    if not sentences:
        return torch.empty(0, model.config.hidden_size)
    if encoder.tokenizer is None:
        raise DataError("this encoder was built without a tokenizer; pass tokenizer= when you build it")
    limit = min(max_length or longest_input(model), longest_input(model))
    ids = encoder.tokenizer(list(sentences), truncation=True, max_length=limit, return_attention_mask=False)["input_ids"]
    order = sorted(range(len(ids)), key=lambda i: -len(ids[i]))  # longest first: memory runs out at once or never
    was_training = encoder.training
    encoder.eval()
    try:
        parts = []
        for chunk in _chunks(order, ids, tokens_per_batch):
            batch = encoder.tokenizer.pad({"input_ids": [ids[i] for i in chunk]}, return_tensors="pt")
            batch = {key: batch[key].to(model.device) for key in ("input_ids", "attention_mask")}
            parts.append(encoder.embed(batch).float().cpu())
    finally:
        encoder.train(was_training)
    vectors = torch.cat(parts)
    restored = torch.empty_like(vectors)
    restored[torch.tensor(order)] = vectors
    return restored


def _chunks(order: list[int], ids: list[list[int]], tokens_per_batch: int) -> Iterator[list[int]]:
    start = 0
    while start < len(order):
        size = max(1, tokens_per_batch // len(ids[order[start]]))
        yield order[start : start + size]
        start += size
