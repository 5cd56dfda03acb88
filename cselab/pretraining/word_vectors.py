"""Word vectors from counts: the truncated SVD of the PPMI matrix (Levy and Goldberg 2014), to start an embedding from."""

from collections.abc import Iterable, Sequence

import numpy as np
from scipy import sparse
from sklearn.utils.extmath import randomized_svd


def cooccurrence(rows: Iterable[Sequence[int]], vocab_size: int, *, window: int = 5) -> sparse.csr_array:
    """How often token j stands within `window` places of token i in the same sentence; symmetric, (vocab, vocab)."""
    flat = np.concatenate([np.asarray([*row, -1], dtype=np.int64) for row in rows])  # -1 ends a sentence
    sentence = np.cumsum(flat == -1)
    total = sparse.csr_array((vocab_size, vocab_size), dtype=np.float64)
    for distance in range(1, window + 1):
        a, b = flat[:-distance], flat[distance:]
        inside = (sentence[:-distance] == sentence[distance:]) & (a >= 0) & (b >= 0)
        pairs = sparse.coo_array((np.ones(inside.sum()), (a[inside], b[inside])), (vocab_size, vocab_size)).tocsr()
        total = total + pairs + pairs.T
    return total


def ppmi_vectors(counts: sparse.csr_array, size: int, *, seed: int = 0) -> np.ndarray:
    """(vocab, size): U sqrt(S) of max(0, log p(i, j) / (p(i) p(j))); tokens without counts get zeros."""
    counts = counts.tocoo()
    total = counts.data.sum()
    marginal = np.bincount(counts.row, counts.data, counts.shape[0])
    pmi = np.log(counts.data * total / (marginal[counts.row] * marginal[counts.col]))
    keep = pmi > 0
    matrix = sparse.csr_array((pmi[keep], (counts.row[keep], counts.col[keep])), counts.shape)
    u, s, _ = randomized_svd(matrix, size, n_iter=4, random_state=seed)
    return u * np.sqrt(s)
