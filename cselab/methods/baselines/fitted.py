"""BERT-whitening (Su et al. 2021) and BERT-flow (Li et al. 2020): maps fitted to a text."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, ClassVar, Literal

import numpy as np
import torch
from jaxtyping import Float
from pydantic import Field
from torch import Tensor, nn

from cselab.errors import DataError
from cselab.methods import AnyMethod, Materials, MethodConfig, TrainingFree, register
from cselab.methods.untrained import Untrained
from cselab.models.encode import Encoder
from cselab.models.texts import as_sentences

LAYERS, STEPS, BATCH, RATE = 6, 500, 256, 1e-3
"""Of the flow."""


def _check_size(sentences: int, width: int) -> None:
    if sentences <= width:
        raise DataError(
            f"a map of {width} dimensions needs more sentences than that, got {sentences}; give "
            "more text, or a larger fitted_on"
        )


def _vectors(encode: Callable, text: Iterable[str]) -> Tensor:
    """Vectors of a text, (n, d). Raises DataError unless n > d."""
    vectors = torch.as_tensor(encode(as_sentences(text)))
    _check_size(*vectors.shape)
    return vectors


class Whitened:
    """BERT-whitening: `encode(sentence) = (e(sentence) - mean) U Lambda^(-1/2)`.

    Su et al. 2021, https://arxiv.org/abs/2103.15316. `U Lambda U^T` is the covariance of the
    vectors of a text. `encode` is the encoder e, a function from n sentences to (n, d).
    Raises DataError unless the text has more than d sentences: its covariance has no inverse.
    """

    def __init__(self, encode: Callable[[list[str]], Tensor | np.ndarray], text: Iterable[str]):
        vectors = _vectors(encode, text).double()
        variances, directions = torch.linalg.eigh(torch.cov(vectors.T))
        self._encode, self.mean = encode, vectors.mean(0)
        self.map = (directions * variances.clamp_min(1e-12).rsqrt()).flip(1)

    def encode(self, sentences: Iterable[str]) -> Float[Tensor, "n d"]:
        """Whitened vectors of sentences, in their order."""
        vectors = torch.as_tensor(self._encode(as_sentences(sentences))).double()
        return ((vectors - self.mean) @ self.map).float()


class Coupling(nn.Module):
    """Affine coupling layer, invertible with a known determinant: a small network reads one half of
    the dimensions, and scales and shifts the other half."""

    def __init__(self, width: int, flip: bool):
        super().__init__()
        self.kept, self.flip = width - width // 2, flip
        self.network = nn.Sequential(
            nn.Linear(self.kept, width), nn.ReLU(), nn.Linear(width, 2 * (width // 2))
        )
        nn.init.zeros_(self.network[-1].weight)  # starts as the identity
        nn.init.zeros_(self.network[-1].bias)

    def forward(self, x: Float[Tensor, "N d"]) -> tuple[Float[Tensor, "N d"], Float[Tensor, " N"]]:
        """The image of x, and the log-determinant at each row."""
        x = x.flip(1) if self.flip else x
        kept, changed = x[:, : self.kept], x[:, self.kept :]
        scale, shift = self.network(kept).chunk(2, dim=1)
        scale = scale.tanh()
        return torch.cat([kept, changed * scale.exp() + shift], dim=1), scale.sum(1)


class Flowed:
    """BERT-flow: map an encoder's vectors to a unit Gaussian by an invertible flow.

    Li et al. 2020, https://arxiv.org/abs/2011.05864. The flow is fitted to the vectors of a text by
    maximum likelihood. Simplified: affine coupling layers on standardised vectors, where the paper
    has Glow. `encode` and the text's length are as in `Whitened`.
    """

    def __init__(self, encode: Callable[[list[str]], Tensor], text: Iterable[str]):
        vectors = _vectors(encode, text).float()
        self._encode, self.mean, self.std = encode, vectors.mean(0), vectors.std(0).clamp_min(1e-6)
        with torch.random.fork_rng():
            torch.manual_seed(0)
            self.layers = nn.ModuleList(
                Coupling(vectors.shape[1], flip=bool(i % 2)) for i in range(LAYERS)
            )
            self.losses = self._fit((vectors - self.mean) / self.std)

    def transform(
        self, x: Float[Tensor, "N d"]
    ) -> tuple[Float[Tensor, "N d"], Float[Tensor, " N"]]:
        """Images of standardised vectors, and the flow's log-determinant at each."""
        total = x.new_zeros(len(x))
        for layer in self.layers:
            x, change = layer(x)
            total = total + change
        return x, total

    def _fit(self, rows: Tensor) -> list[float]:
        """Fit the layers; returns the negative log-likelihood per dimension of each step, without
        the Gaussian's constant."""
        optimizer, losses = torch.optim.Adam(self.layers.parameters(), lr=RATE), []
        for _ in range(STEPS):
            z, change = self.transform(rows[torch.randint(len(rows), (BATCH,))])
            loss = (0.5 * z.square().sum(1) - change).mean() / rows.shape[1]
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        return losses

    def encode(self, sentences: Iterable[str]) -> Float[Tensor, "n d"]:
        """Vectors of sentences under the flow, in their order."""
        vectors = torch.as_tensor(self._encode(as_sentences(sentences))).float()
        with torch.no_grad():
            return self.transform((vectors - self.mean) / self.std)[0]


class Fitted(TrainingFree):
    """An encoder, trained or not, and a map of its vectors that is fitted to a text."""

    class Config(MethodConfig):
        start: AnyMethod = Field(default_factory=Untrained.Config)
        """ImSimCSE Table 4: the pretrained backbone, and a finished SimCSE."""
        text: Literal["corpus", "nli"] = "corpus"
        """"corpus" is the training text; "nli" has the premises and hypotheses, without labels."""
        fitted_on: int = Field(10_000, ge=2)
        """Sentences; ours."""

    fits = True
    map_class: ClassVar[type]
    """Made of `encode` and the sentences it is fitted to."""

    @classmethod
    def check(cls, config: Config, parts: Sequence[Encoder], sentences: int) -> None:
        _check_size(min(sentences, config.fitted_on), parts[0].encode(["."]).shape[1])

    @classmethod
    def encoder(cls, config: Config, materials: Materials) -> Any:
        return cls.map_class(materials.parts[0].encode, materials.text(config.fitted_on))


@register("whitened")
class BertWhitening(Fitted):
    """An encoder, the pretrained backbone by default, whitened on a text
    (https://arxiv.org/abs/2103.15316)."""

    map_class = Whitened
    paper_row = "BERT-whitening"


@register("flow")
class BertFlow(Fitted):
    """An encoder, the pretrained backbone by default, and a flow to a unit Gaussian
    (https://arxiv.org/abs/2011.05864)."""

    map_class = Flowed
    paper_row = "BERT-flow"
