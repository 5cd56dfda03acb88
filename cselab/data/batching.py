"""Batches of like lengths, each sentence as two views, padded to the batch and not to a fixed 64."""

from collections.abc import Iterator, Sequence

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import Sampler
from transformers import PreTrainedTokenizerBase

from cselab.errors import DataError


class BucketedBatchSampler(Sampler[list[int]]):
    """Batches of row numbers, of like lengths, every row at most once an epoch; the ragged last batch is left out.

    Rows are shuffled, sorted by length within buckets of `batches_per_bucket` batches, and the batches shuffled again, so that
    a batch is random text of one length. Keyed on (seed, epoch) alone: a resumed run sees the same batches, and
    nothing else that draws random numbers changes them.

    Raises DataError for a batch of fewer than 2 (no negatives) or more rows than there are.
    """

    def __init__(self, lengths: Sequence[int], batch_size: int, *, seed: int, batches_per_bucket: int = 50):
        if batch_size < 2:
            raise DataError(f"a batch of {batch_size} has no negatives; use a batch_size of at least 2")
        if len(lengths) < batch_size:
            raise DataError(
                f"the corpus has {len(lengths)} sentences, fewer than one batch of {batch_size}; "
                "give more sentences or a smaller batch"
            )
        self.lengths = np.asarray(lengths)
        self.batch_size = batch_size
        self.seed = seed
        self.epoch = 0
        self.rows_per_bucket = batch_size * batches_per_bucket

    def set_epoch(self, epoch: int) -> None:
        self.epoch = epoch

    def __len__(self) -> int:
        return len(self.lengths) // self.batch_size

    def __iter__(self) -> Iterator[list[int]]:
        random = np.random.default_rng((self.seed, self.epoch))
        rows = random.permutation(len(self.lengths))[: len(self) * self.batch_size]
        batches = []
        for start in range(0, len(rows), self.rows_per_bucket):
            bucket = rows[start : start + self.rows_per_bucket]
            bucket = bucket[np.argsort(self.lengths[bucket], kind="stable")]
            batches.extend(bucket.reshape(-1, self.batch_size))
        for i in random.permutation(len(batches)):
            yield batches[i].tolist()


class TwoViewCollator:
    """N rows to a batch of 2N, view-major: all first views, then all second; padded to the longest of the 2N.

    The second view is the same text (dropout makes it differ), or `input_ids_b` where the row has one.
    """

    def __init__(self, tokenizer: PreTrainedTokenizerBase):
        self.tokenizer = tokenizer

    def __call__(self, rows: list[dict]) -> dict[str, Tensor]:
        """`input_ids` and `attention_mask`, (2N, L) int64."""
        ids = [row["input_ids"] for row in rows] + [row.get("input_ids_b", row["input_ids"]) for row in rows]
        longest = max(map(len, ids))
        input_ids = torch.full((len(ids), longest), self.tokenizer.pad_token_id)
        attention_mask = torch.zeros(len(ids), longest, dtype=torch.long)
        for i, row in enumerate(ids):
            input_ids[i, : len(row)] = torch.tensor(row)
            attention_mask[i, : len(row)] = 1
        return {"input_ids": input_ids, "attention_mask": attention_mask}
