"""SIF: the weighted mean of word vectors without their common direction.

Word vectors are from counts, the truncated SVD of the PPMI matrix (Levy and Goldberg 2014,
https://papers.nips.cc/paper/5477-neural-word-embedding-as-implicit-matrix-factorization).
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Float
from pydantic import Field
from scipy import sparse
from torch import Tensor
from transformers import PreTrainedTokenizerBase

from cselab.config import shared
from cselab.data.token_rows import Rows
from cselab.methods import Materials, MethodConfig, TrainingFree, register
from cselab.methods.nodes import ModelName
from cselab.models import load_backbone, load_tokenizer
from cselab.models.texts import as_sentences, flattened, warn_of_lost_text

COMMON_FROM = 50_000
"""Number of sentences from which the common direction is computed."""


def cooccurrence(rows: Rows, vocab_size: int, *, window: int = 5) -> sparse.csr_array:
    """Counts of tokens i and j within `window` places in a sentence; symmetric, (vocab, vocab)."""
    sentence: np.ndarray = np.repeat(np.arange(len(rows), dtype=np.int32), rows.lengths)
    total = sparse.csr_array((vocab_size, vocab_size), dtype=np.float64)
    for distance in range(1, window + 1):
        inside = sentence[:-distance] == sentence[distance:]
        a, b = rows.flat[:-distance][inside], rows.flat[distance:][inside]
        pairs = sparse.coo_array((np.ones(len(a)), (a, b)), (vocab_size, vocab_size)).tocsr()
        total = total + pairs + pairs.T
    return total


def ppmi_vectors(counts: sparse.csr_array, size: int, *, seed: int = 0) -> np.ndarray:
    """Word vectors U sqrt(S) of the PPMI matrix max(0, log p(i, j) / (p(i) p(j))), (vocab, size);
    zeros for tokens without counts."""
    from sklearn.utils.extmath import randomized_svd  # here: a notebook starts sooner

    counts = counts.tocoo()
    total = counts.data.sum()
    marginal = np.bincount(counts.row, counts.data, counts.shape[0])
    pmi = np.log(counts.data * total / (marginal[counts.row] * marginal[counts.col]))
    keep = pmi > 0
    matrix = sparse.csr_array((pmi[keep], (counts.row[keep], counts.col[keep])), counts.shape)
    u, s, _ = randomized_svd(matrix, size, n_iter=4, random_state=seed)
    return u * np.sqrt(s)


def sif_weights(rows: Rows, vocab_size: int, special: list[int]) -> np.ndarray:
    """SIF weights a / (a + p(w)), a = 0.001, from the share p(w) of each token in the text,
    (vocab,); 0 for special tokens.

    Arora et al. 2017, https://openreview.net/forum?id=SyK00v5xx.
    """
    counts = np.bincount(rows.flat, minlength=vocab_size).astype(np.float64)
    counts[special] = 0
    weights = 1e-3 / (1e-3 + counts / counts.sum())
    weights[special] = 0
    return weights


@dataclass(eq=False)
class SifMean:
    """SIF encoder: mean of `a / (a + p(w)) v(w)` over tokens, minus its common direction.

    Arora et al. 2017, https://openreview.net/forum?id=SyK00v5xx. Word vectors are (vocab, d),
    weights (vocab,), 0 for special tokens, and the direction (d,), of unit length.
    """

    vectors: Tensor
    weights: Tensor
    direction: Tensor
    tokenizer: PreTrainedTokenizerBase

    @classmethod
    def fit(cls, rows: Rows, tokenizer: PreTrainedTokenizerBase, *, size: int) -> "SifMean":
        """Compute word vectors of `size` dimensions, frequencies and the common direction of a text
        that `tokenizer` made into rows; the paper's released code takes the direction from the test
        set."""
        weights = sif_weights(rows, len(tokenizer), tokenizer.all_special_ids)
        vectors = ppmi_vectors(cooccurrence(rows, len(tokenizer)), size)
        tensors = torch.tensor(vectors).float(), torch.tensor(weights).float()
        model = cls(*tensors, torch.zeros(size), tokenizer)
        sample = np.random.default_rng(0).permutation(len(rows))[:COMMON_FROM]
        ids = [rows.flat[rows.starts[i] : rows.starts[i + 1]].tolist() for i in sample]
        model.direction = torch.linalg.svd(model.means(ids), full_matrices=False).Vh[0]
        return model

    def means(self, ids: list[list[int]]) -> Float[Tensor, "n d"]:
        """Weighted means of token lists, with their common direction."""
        flat = torch.tensor([token for row in ids for token in row], dtype=torch.long)
        lengths = torch.tensor([len(row) for row in ids], dtype=torch.long)
        offsets = lengths.cumsum(0) - lengths
        sums = F.embedding_bag(
            flat, self.vectors, offsets, mode="sum", per_sample_weights=self.weights[flat]
        )
        return sums / lengths[:, None]

    def encode(self, sentences: Iterable[str]) -> Float[Tensor, "n d"]:
        """SIF vectors of sentences, in their order."""
        if not (sentences := as_sentences(sentences)):
            return self.vectors.new_empty(0, len(self.direction))
        ids = self.tokenizer(sentences, return_attention_mask=False)["input_ids"]
        warn_of_lost_text(flattened(ids), self.tokenizer, None, "the text to encode")
        means = self.means(ids)
        return means - torch.outer(means @ self.direction, self.direction)


@register("sif")
class SIF(TrainingFree):
    """SIF vectors of the training text, in the backbone's vocabulary and width: a lower baseline
    (https://openreview.net/forum?id=SyK00v5xx)."""

    class Config(MethodConfig):
        backbone: ModelName = shared("google-bert/bert-base-uncased")
        """A shipped name, a folder, or a name on the hub."""
        max_length: int = Field(32, ge=4)

    fits = True

    @classmethod
    def encoder(cls, config: Config, materials: Materials) -> Any:
        folder = materials.folder(config.backbone)
        tokenizer, width = load_tokenizer(folder), load_backbone(folder).config.hidden_size
        rows = Rows.tokenize(materials.text(None), tokenizer, max_length=config.max_length)
        tokens = rows.flat, rows.lengths
        warn_of_lost_text(tokens, tokenizer, config.max_length, "the training text")
        return SifMean.fit(rows, tokenizer, size=width)
