"""Batches of sentences of similar length, with two views of each, padded to the longest."""

import itertools
from collections.abc import Iterator, Sequence

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import Sampler
from transformers import PreTrainedTokenizerBase

from cselab.errors import DataError

BATCHES_PER_BUCKET = 50
"""Rows are sorted by length in buckets of so many batches: little padding, still random batches."""


class BucketedBatchSampler(Sampler[list[int]]):
    """Batches of row numbers of similar length; every row occurs at most once per epoch.

    Rows are shuffled, sorted by length within buckets of 50 batches, and the batches shuffled
    again; a last batch that is short is left out. The order depends on (seed, epoch) only, so a
    resumed run sees the same batches, whatever else draws random numbers.

    Args:
        lengths: Tokens per row, (n,).
        by_length: False: batches of rows drawn at random, not sorted.
        part: (rank, processes); yields the rows of one process. The batches do not depend on the
            number of processes.

    Raises:
        DataError: For a batch size below 2 or the number of processes, or above that of rows.

    Examples:
        >>> from cselab.data import BucketedBatchSampler
        >>> sampler = BucketedBatchSampler([9, 3, 4, 8, 3, 5], batch_size=2, seed=0)
        >>> list(sampler)  # rows of 3 tokens, of 4 and 5, of 9 and 8
        [[4, 1], [2, 5], [3, 0]]
    """

    def __init__(
        self,
        lengths: Sequence[int] | np.ndarray,
        batch_size: int,
        *,
        seed: int,
        by_length: bool = True,
        part: tuple[int, int] = (0, 1),
    ):
        if batch_size < 2:
            raise DataError(
                f"a batch of {batch_size} has no negatives; use a batch size of at least 2"
            )
        if batch_size < part[1]:
            raise DataError(
                f"a batch of {batch_size} cannot be shared by {part[1]} processes; give a larger "
                "batch"
            )
        if len(lengths) < batch_size:
            raise DataError(
                f"the corpus has {len(lengths)} sentences, fewer than one batch of {batch_size}; "
                "give more sentences or a smaller batch"
            )
        # [:]: reading a dataset's column item by item is 200 times slower
        self.lengths = np.asarray(lengths[:])
        self.batch_size = batch_size
        self.seed = seed
        self.by_length = by_length
        self.part = part
        self.epoch = 0

    def set_epoch(self, epoch: int) -> None:
        """Set the epoch of the next pass; accelerate and the Trainer call it."""
        self.epoch = epoch

    def __len__(self) -> int:
        return len(self.lengths) // self.batch_size

    def __iter__(self) -> Iterator[list[int]]:
        random = np.random.default_rng((self.seed, self.epoch))
        rows = random.permutation(len(self.lengths))[: len(self) * self.batch_size]
        in_bucket = self.batch_size * BATCHES_PER_BUCKET
        batches = []
        for bucket in np.split(rows, range(in_bucket, len(rows), in_bucket)):
            if self.by_length:
                bucket = bucket[np.argsort(self.lengths[bucket], kind="stable")]
            batches += np.split(bucket, range(self.batch_size, len(bucket), self.batch_size))
        for i in random.permutation(len(batches)):
            yield np.array_split(batches[i], self.part[1])[self.part[0]].tolist()


class ViewCollator:
    """Collate N rows into a view-major batch of views * N: all first views, then all second, ….

    Args:
        views: The first is `input_ids`; the second is `input_ids_b`, or the same text where the row
            has none (dropout makes it differ); the third, a hard negative, is `input_ids_c`.
    """

    def __init__(self, tokenizer: PreTrainedTokenizerBase, *, views: int = 2):
        if tokenizer.pad_token_id is None:
            raise DataError(
                "the tokenizer has no padding token; set tokenizer.pad_token = tokenizer.eos_token"
            )
        self.pad_token_id = tokenizer.pad_token_id
        self.views = views

    def __call__(self, rows: list[dict]) -> dict[str, Tensor]:
        """Collate rows into `input_ids` and `attention_mask`, (views * N, L) int64.

        With `text_hash`, (N,), and `target`, (N, d), if the rows have them.
        """
        if self.views == 3 and "input_ids_c" not in rows[0]:
            raise DataError(
                "this method learns from triplets: rows need input_ids, input_ids_b and input_ids_c"
            )
        columns = ("input_ids", "input_ids_b", "input_ids_c")[: self.views]
        views = [row.get(column, row["input_ids"]) for column in columns for row in rows]
        lengths = torch.tensor([len(ids) for ids in views])
        mask = torch.arange(int(lengths.max())) < lengths[:, None]
        input_ids = torch.full(mask.shape, self.pad_token_id)
        input_ids[mask] = torch.tensor(list(itertools.chain.from_iterable(views)))
        batch = {"input_ids": input_ids, "attention_mask": mask.long()}
        for column in ("text_hash", "target"):
            if column in rows[0]:
                batch[column] = torch.tensor([row[column] for row in rows])
        return batch
