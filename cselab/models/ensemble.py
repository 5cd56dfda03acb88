"""Weighted sum of encoders, each with its tokenizer (EDFSE; "+UC" of TNCSE and JTCSE)."""

from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor

from cselab.errors import ModelError
from cselab.models.sentence import SentenceEncoder
from cselab.models.twin import TwinEncoder


class Ensemble:
    """Weighted sum of encoders: `encode(sentence) = sum_k w_k e_k(sentence)`.

    EDFSE is the unweighted sum of k towers, each trained on round trips through another pivot
    language; `uc` weighs a twin and a third encoder. Distillation turns an ensemble into one tower.

    Raises ModelError for no members, another number of weights than members, and widths that
    differ.
    """

    def __init__(
        self,
        members: Sequence["SentenceEncoder | TwinEncoder | Ensemble"],
        weights: Sequence[float] | None = None,
    ):
        weights = [1.0] * len(members) if weights is None else list(weights)
        if not members or len(weights) != len(members):
            raise ModelError(
                f"an ensemble needs members and a weight for each, got {len(members)} and "
                f"{len(weights)}"
            )
        self.members, self.weights = tuple(members), tuple(weights)
        if len(widths := {model.config.hidden_size for model in self.backbones}) > 1:
            raise ModelError(
                f"the members' vectors have {', '.join(map(str, sorted(widths)))} dimensions; a "
                "sum needs one width"
            )

    @classmethod
    def uc(cls, twin: TwinEncoder, other: SentenceEncoder, *, weight: float = 0.7) -> "Ensemble":
        """The "+UC" ensemble `(1 - w) twin + w other`; the released JTCSE has w = 0.7.

        Raises ModelError for a weight outside 0..1.
        """
        if not 0 <= weight <= 1:
            raise ModelError(
                f"weight={weight} is outside 0..1; it is the other encoder's share, 0.7 in the "
                "released code"
            )
        return cls([twin, other], [1 - weight, weight])

    @property
    def backbones(self) -> tuple:
        """The transformers models of all members."""
        return tuple(model for member in self.members for model in member.backbones)

    def encode(self, sentences: list[str], **options) -> Float[Tensor, "n d"]:
        """Embeddings of sentences, in their order; options as in `cselab.models.encode`."""
        parts = [
            w * member.encode(sentences, **options)
            for member, w in zip(self.members, self.weights, strict=True)
        ]
        return torch.stack(parts).sum(0)
