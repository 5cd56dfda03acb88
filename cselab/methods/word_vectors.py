"""Word vectors from counts: the truncated SVD of the PPMI matrix.

Levy and Goldberg 2014,
https://papers.nips.cc/paper/5477-neural-word-embedding-as-implicit-matrix-factorization.
"""

import numpy as np
from scipy import sparse

from cselab.data.token_rows import Rows


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
    """Word vectors U sqrt(S) of the PPMI matrix max(0, log p(i, j) / (p(i) p(j))), (vocab, size).

    Tokens without counts get zeros.
    """
    from sklearn.utils.extmath import randomized_svd  # here: a notebook starts sooner

    counts = counts.tocoo()
    total = counts.data.sum()
    marginal = np.bincount(counts.row, counts.data, counts.shape[0])
    pmi = np.log(counts.data * total / (marginal[counts.row] * marginal[counts.col]))
    keep = pmi > 0
    matrix = sparse.csr_array((pmi[keep], (counts.row[keep], counts.col[keep])), counts.shape)
    u, s, _ = randomized_svd(matrix, size, n_iter=4, random_state=seed)
    return u * np.sqrt(s)


def sif_weights(rows: Rows, vocab_size: int, special: list[int], *, a: float = 1e-3) -> np.ndarray:
    """SIF weights a / (a + p(w)) from the share p(w) of each token in the text, (vocab,).

    Arora et al. 2017, https://openreview.net/forum?id=SyK00v5xx.

    Args:
        rows: The tokenised text.
        vocab_size: Number of tokens in the vocabulary.
        special: Ids of special tokens, whose weight is 0.
        a: The smaller, the less a frequent word weighs.
    """
    counts = np.bincount(rows.flat, minlength=vocab_size).astype(np.float64)
    counts[special] = 0
    weights = a / (a + counts / counts.sum())
    weights[special] = 0
    return weights
