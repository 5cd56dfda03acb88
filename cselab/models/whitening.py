"""BERT-whitening: a linear map after any encoder."""

from collections.abc import Callable, Sequence

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from cselab.errors import DataError


class Whitened:
    """BERT-whitening: `encode(sentence) = (e(sentence) - mean) U Lambda^(-1/2)`.

    Su et al. 2021, https://arxiv.org/abs/2103.15316. `U Lambda U^T` is the covariance of the
    vectors of a text.

    Raises DataError for a text of fewer sentences than dimensions: its covariance has no inverse.
    """

    def __init__(
        self,
        encode: Callable[[list[str]], Tensor | np.ndarray],
        text: Sequence[str],
        *,
        dimensions: int | None = None,
    ):
        """dimensions: the number of directions of largest variance to keep; None keeps all."""
        vectors = torch.as_tensor(encode(list(text))).double()
        if len(vectors) <= vectors.shape[1]:
            raise DataError(
                f"whitening {vectors.shape[1]} dimensions needs more sentences than that, got "
                f"{len(vectors)}; give more text"
            )
        variances, directions = torch.linalg.eigh(torch.cov(vectors.T))
        self._encode, self.mean = encode, vectors.mean(0)
        self.map = (directions * variances.clamp_min(1e-12).rsqrt()).flip(1)[:, :dimensions]

    def encode(self, sentences: list[str]) -> Float[Tensor, "n d"]:
        """Whitened vectors of sentences, in their order."""
        vectors = torch.as_tensor(self._encode(sentences)).double()
        return ((vectors - self.mean) @ self.map).float()
