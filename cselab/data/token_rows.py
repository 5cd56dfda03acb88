"""Tokenised sentences in one flat array."""

import itertools
from collections.abc import Iterable, Sequence
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

    def batch(self, which: Sequence[int], pad: int) -> dict[str, Tensor]:
        """`input_ids` and `attention_mask` of the sentences `which`, (B, L) each."""
        ids = self.padded(np.array(which), pad)
        return {"input_ids": ids, "attention_mask": (ids != pad).long()}

    def padded(self, which: np.ndarray, pad: int, *, skip: int = 0) -> Int[Tensor, "B L"]:
        """The sentences `which`, without their first `skip` tokens, padded to the longest."""
        begin = self.starts[which] + skip
        lengths = self.starts[which + 1] - begin
        columns = np.arange(lengths.max())
        places = np.minimum(begin[:, None] + columns, len(self.flat) - 1)
        ids = np.where(columns < lengths[:, None], self.flat[places], pad)
        return torch.from_numpy(ids.astype(np.int64))
