"""Tokenised sentences in one flat array, and batches of them that depend on the seed only."""

import itertools
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Int
from torch import Tensor
from transformers import PreTrainedTokenizerBase

CHUNK = 20_000
"""Sentences tokenised at a time, which bounds the memory."""


@dataclass(frozen=True)
class Rows:
    """Tokenised sentences: sentence i is `flat[starts[i]:starts[i + 1]]`, with special tokens."""

    flat: np.ndarray
    starts: np.ndarray

    @classmethod
    def tokenize(
        cls, sentences: Iterable[str], tokenizer: PreTrainedTokenizerBase, *, max_length: int
    ) -> "Rows":
        """Tokenise sentences, truncated to `max_length` tokens."""
        parts, lengths, sentences = [], [], iter(sentences)
        options = dict(truncation=True, max_length=max_length, return_attention_mask=False)
        while chunk := list(itertools.islice(sentences, CHUNK)):
            ids = tokenizer(chunk, **options)["input_ids"]
            lengths += [len(row) for row in ids]
            parts.append(np.fromiter(itertools.chain.from_iterable(ids), np.int32))
        return cls(np.concatenate(parts), np.concatenate([[0], np.cumsum(lengths)]))

    def __len__(self) -> int:
        return len(self.starts) - 1

    @property
    def lengths(self) -> np.ndarray:
        """Tokens per sentence, (n,)."""
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
    """Endless batches of row numbers of similar length; each epoch is a new shuffle of all rows."""
    for epoch in itertools.count():
        random = np.random.default_rng((seed, epoch))
        order = random.permutation(len(lengths))[: len(lengths) // batch_size * batch_size]
        order = order[np.argsort(lengths[order] + random.uniform(-2, 2, len(order)), kind="stable")]
        yield from random.permutation(order.reshape(-1, batch_size))


def next_sentence_pairs(
    rows: Rows, pairs: int, pad: int, random: np.random.Generator
) -> tuple[Int[Tensor, "B L"], Int[Tensor, "B L"], Int[Tensor, " B"]]:
    """Pairs for BERT's next-sentence task: token ids, segments and labels.

    Devlin et al. 2019, https://arxiv.org/abs/1810.04805, section 3.1, task 2. In every second pair,
    the second sentence is a random one of the text.

    Returns:
        Ids `[CLS] a [SEP] b [SEP]`, (B, L); segments, 0 for a and 1 for b, (B, L); and labels, 0 if
        b follows a, (B,).
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
