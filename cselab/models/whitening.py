"""BERT-whitening: a linear map after any encoder."""

from collections.abc import Callable, Iterable

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from cselab.errors import DataError
from cselab.models.texts import as_sentences


class Whitened:
    """BERT-whitening: `encode(sentence) = (e(sentence) - mean) U Lambda^(-1/2)`.

    Su et al. 2021, https://arxiv.org/abs/2103.15316. `U Lambda U^T` is the covariance of the
    vectors of a text.

    Args:
        encode: The encoder e, a function from n sentences to (n, d).
        text: Sentences of which mean and covariance are taken, more than d.
        dimensions: Number of directions of largest variance to keep; None keeps all.

    Raises:
        DataError: For a text that does not have more sentences than dimensions: its covariance has
            no inverse.

    Examples:
        >>> import torch
        >>> from cselab.models import Whitened
        >>> def letters_and_words(sentences):
        ...     return torch.tensor([[len(s), len(s.split())] for s in sentences])
        >>> text = ["A dog.", "A dog sleeps.", "A small dog sleeps.", "Dogs", "Dogs sleep soundly."]
        >>> vectors = Whitened(letters_and_words, text).encode(text)
        >>> torch.allclose(torch.cov(vectors.T), torch.eye(2), atol=1e-5)
        True
    """

    def __init__(
        self,
        encode: Callable[[list[str]], Tensor | np.ndarray],
        text: Iterable[str],
        *,
        dimensions: int | None = None,
    ):
        vectors = torch.as_tensor(encode(as_sentences(text, "Whitened"))).double()
        if len(vectors) <= vectors.shape[1]:
            raise DataError(
                f"whitening {vectors.shape[1]} dimensions needs more sentences than that, got "
                f"{len(vectors)}; give more text"
            )
        variances, directions = torch.linalg.eigh(torch.cov(vectors.T))
        self._encode, self.mean = encode, vectors.mean(0)
        self.map = (directions * variances.clamp_min(1e-12).rsqrt()).flip(1)[:, :dimensions]

    def encode(self, sentences: Iterable[str]) -> Float[Tensor, "n d"]:
        """Whitened vectors of sentences, in their order."""
        vectors = torch.as_tensor(self._encode(as_sentences(sentences))).double()
        return ((vectors - self.mean) @ self.map).float()
