"""Tokenised sentences in one flat array, and batches drawn from them by (seed, step) alone."""

import itertools
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Int
from torch import Tensor
from transformers import PreTrainedTokenizerBase

CHUNK = 20_000
"""Sentences tokenised at a time; what memory depends on."""


@dataclass(frozen=True)
class Rows:
    """Sentence i is `flat[starts[i]:starts[i + 1]]`, with its special tokens."""

    flat: np.ndarray
    starts: np.ndarray

    @classmethod
    def tokenize(cls, sentences: Iterable[str], tokenizer: PreTrainedTokenizerBase, *, max_length: int) -> "Rows":
        parts, lengths, sentences = [], [], iter(sentences)
        while chunk := list(itertools.islice(sentences, CHUNK)):
            ids = tokenizer(chunk, truncation=True, max_length=max_length, return_attention_mask=False)["input_ids"]
            lengths += [len(row) for row in ids]
            parts.append(np.fromiter(itertools.chain.from_iterable(ids), np.int32))
        return cls(np.concatenate(parts), np.concatenate([[0], np.cumsum(lengths)]))

    def __len__(self) -> int:
        return len(self.starts) - 1

    @property
    def lengths(self) -> np.ndarray:
        return np.diff(self.starts)

    def padded(self, which: np.ndarray, pad: int, *, skip: int = 0) -> Int[Tensor, "B L"]:
        """The sentences `which`, without their first `skip` tokens, padded to the longest."""
        begin = self.starts[which] + skip
        lengths = self.starts[which + 1] - begin
        columns = np.arange(lengths.max())
        places = np.minimum(begin[:, None] + columns, len(self.flat) - 1)
        ids = np.where(columns < lengths[:, None], self.flat[places], pad)
        return torch.from_numpy(ids.astype(np.int64))


def batches(lengths: np.ndarray, batch_size: int, *, seed: int) -> Iterator[np.ndarray]:
    """Row numbers of batches of like lengths without end: every row once an epoch, a new shuffle each."""
    for epoch in itertools.count():
        random = np.random.default_rng((seed, epoch))
        order = random.permutation(len(lengths))[: len(lengths) // batch_size * batch_size]
        order = order[np.argsort(lengths[order] + random.uniform(-2, 2, len(order)), kind="stable")]
        yield from random.permutation(order.reshape(-1, batch_size))


def neighbours(
    rows: Rows, pairs: int, pad: int, random: np.random.Generator
) -> tuple[Int[Tensor, "B L"], Int[Tensor, "B L"], Int[Tensor, " B"]]:
    """BERT's next-sentence task: `[CLS] a [SEP] b [SEP]`, segments (0 for a, 1 for b) and labels (0: b follows a).

    For every second pair b is any sentence of the text instead of the one after a (Devlin et al. 2019, 3.1, task 2).
    """
    first = random.integers(0, len(rows) - 1, pairs)
    second = np.where(np.arange(pairs) % 2, random.integers(0, len(rows), pairs), first + 1)
    a, b = rows.padded(first, pad), rows.padded(second, pad, skip=1)
    lengths_a, lengths_b = (a != pad).sum(1), (b != pad).sum(1)
    ids = torch.full((pairs, int((lengths_a + lengths_b).max())), pad)
    segments = torch.zeros_like(ids)
    columns = torch.arange(ids.shape[1])
    in_a = columns < lengths_a[:, None]
    in_b = ~in_a & (columns < (lengths_a + lengths_b)[:, None])
    ids[in_a], ids[in_b], segments[in_b] = a[a != pad], b[b != pad], 1
    return ids, segments, torch.arange(pairs) % 2
