"""Token batches of sentences on a model's device, for analyses of its hidden states."""

from collections.abc import Iterable, Iterator

from torch import Tensor
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from cselab.errors import DataError
from cselab.models.backbone import longest_text
from cselab.models.texts import as_sentences

BATCH = 64


def token_batches(
    tokenizer: PreTrainedTokenizerBase,
    sentences: Iterable[str],
    model: PreTrainedModel,
    *,
    max_length: int | None = None,
) -> Iterator[dict[str, Tensor]]:
    """`input_ids` and `attention_mask` of 64 sentences at a time, in order, truncated.

    Args:
        tokenizer: The model's.
        sentences: Any number of sentences.
        model: The model that reads the batches, on its device.
        max_length: Tokens of a sentence; None: as many as `longest_text` says.

    Raises:
        DataError: As `as_sentences`, and without a sentence.
    """
    sentences = as_sentences(sentences, "the analysis")
    if not sentences:
        raise DataError("the analysis takes at least one sentence, got none")
    for start in range(0, len(sentences), BATCH):
        batch = tokenizer(
            sentences[start : start + BATCH],
            padding=True,
            padding_side="right",
            truncation=True,
            max_length=max_length or longest_text(model, tokenizer),
            return_tensors="pt",
            return_token_type_ids=False,
        ).to(model.device)
        yield {name: batch[name] for name in ("input_ids", "attention_mask")}
