"""SIF: the weighted mean of word vectors without their common direction (Arora et al. 2017). What counting alone can do."""

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor
from transformers import PreTrainedTokenizerBase

from cselab.pretraining.text import Rows
from cselab.pretraining.word_vectors import cooccurrence, ppmi_vectors, sif_weights

COMMON_FROM = 50_000
"""Sentences whose means the common direction is taken from."""


class SifMean:
    """`encode(sentences) -> (n, d)`: mean of `a / (a + p(w)) v(w)` over tokens, less its part along the common direction.

    vectors: (vocab, d) float32. weights: (vocab,), 0 for special tokens. direction: (d,), of unit length.
    """

    def __init__(self, vectors: Tensor, weights: Tensor, direction: Tensor, tokenizer: PreTrainedTokenizerBase):
        self.vectors, self.weights, self.direction, self.tokenizer = vectors, weights, direction, tokenizer

    @classmethod
    def fit(
        cls, rows: Rows, tokenizer: PreTrainedTokenizerBase, *, size: int, a: float = 1e-3, seed: int = 0
    ) -> "SifMean":
        """Vectors of `size` (truncated SVD of the PPMI matrix, window 5), frequencies and common direction of a tokenised text.

        The direction is taken from this text and never from a test set, as the paper's released code has it.
        """
        weights = sif_weights(rows, len(tokenizer), tokenizer.all_special_ids, a=a)
        vectors = ppmi_vectors(cooccurrence(rows, len(tokenizer)), size, seed=seed)
        model = cls(torch.tensor(vectors).float(), torch.tensor(weights).float(), torch.zeros(size), tokenizer)
        some = np.random.default_rng(seed).permutation(len(rows))[:COMMON_FROM]
        ids = [rows.flat[rows.starts[i] : rows.starts[i + 1]].tolist() for i in some]
        model.direction = torch.linalg.svd(model.means(ids), full_matrices=False).Vh[0]
        return model

    def means(self, ids: list[list[int]]) -> Float[Tensor, "n d"]:
        """Weighted means of token lists, the common direction still in."""
        flat = torch.tensor([token for row in ids for token in row])
        lengths = torch.tensor([len(row) for row in ids])
        offsets = lengths.cumsum(0) - lengths
        sums = F.embedding_bag(flat, self.vectors, offsets, mode="sum", per_sample_weights=self.weights[flat])
        return sums / lengths[:, None]

    def encode(self, sentences: list[str]) -> Float[Tensor, "n d"]:
        means = self.means(self.tokenizer(sentences, return_attention_mask=False)["input_ids"])
        return means - torch.outer(means @ self.direction, self.direction)
