"""Token batches of sentences on a model's device, for analyses of its hidden states."""

from collections.abc import Iterator, Sequence

from torch import Tensor
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from cselab.models import longest_input

BATCH = 64


def token_batches(
    tokenizer: PreTrainedTokenizerBase,
    sentences: Sequence[str],
    model: PreTrainedModel,
    *,
    max_length: int | None = None,
) -> Iterator[dict[str, Tensor]]:
    """`input_ids` and `attention_mask` of 64 sentences at a time, in order, truncated.

    Args:
        tokenizer: The model's.
        sentences: Any number of sentences.
        model: The model that reads the batches, on its device.
        max_length: Tokens of a sentence; None: as many as the model reads.
    """
    for start in range(0, len(sentences), BATCH):
        batch = tokenizer(
            list(sentences[start : start + BATCH]),
            padding=True,
            truncation=True,
            max_length=max_length or longest_input(model),
            return_tensors="pt",
            return_token_type_ids=False,
        ).to(model.device)
        yield {name: batch[name] for name in ("input_ids", "attention_mask")}
