"""Weighted sum of encoders, each with its tokenizer (EDFSE; "+UC" of TNCSE and JTCSE)."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TypeAlias, Union

import torch
from jaxtyping import Float
from torch import Tensor, nn

from cselab.errors import ModelError
from cselab.models.folder import new_folder, read_card, write_card
from cselab.models.sentence import SentenceEncoder
from cselab.models.texts import as_sentences
from cselab.models.twin import TwinEncoder

AnyEncoder: TypeAlias = Union[SentenceEncoder, TwinEncoder, "Ensemble"]
"""Encoders that a folder can hold, and that an ensemble sums."""


class Ensemble(nn.Module):
    """Weighted sum of encoders: `encode(sentence) = sum_k w_k e_k(sentence)`.

    EDFSE is the unweighted sum of k towers, each trained on round trips through another pivot
    language; `uc` weighs a twin and a third encoder. Distillation turns an ensemble into one tower.

    Args:
        members: Of one width; each keeps its own tokenizer.
        weights: One per member; None: all 1.

    Raises:
        ModelError: For no members, another number of weights, members of another kind (word
            vectors, a whitened encoder), and widths that differ.

    Examples:
        >>> from cselab import load
        >>> from cselab.models import Ensemble
        >>> members = [load("tiny-bert"), load("plain-bert")]
        >>> Ensemble(members, [0.3, 0.7]).encode(["A dog sleeps."]).shape
        torch.Size([1, 192])
    """

    def __init__(self, members: Sequence[AnyEncoder], weights: Sequence[float] | None = None):
        super().__init__()
        weights = [1.0] * len(members) if weights is None else list(weights)
        if not members or len(weights) != len(members):
            raise ModelError(
                f"an ensemble needs members and a weight for each, got {len(members)} and "
                f"{len(weights)}"
            )
        for member in members:
            if not isinstance(member, SentenceEncoder | TwinEncoder | Ensemble):
                raise ModelError(
                    f"an ensemble sums single towers, twins and ensembles; got a "
                    f"{type(member).__name__}"
                )
        self.members, self.weights = nn.ModuleList(members), tuple(weights)
        if len(widths := {model.config.hidden_size for model in self.backbones}) > 1:
            raise ModelError(
                f"the members' vectors have {', '.join(map(str, sorted(widths)))} dimensions; a "
                "sum needs one width"
            )

    @classmethod
    def uc(cls, first: AnyEncoder, other: AnyEncoder, *, weight: float = 0.7) -> "Ensemble":
        """The "+UC" ensemble `(1 - w) first + w other` (JTCSE, https://arxiv.org/abs/2505.02366).

        `first` is a twin (in RankCSE+UC a single tower), `other` the papers' InfoCSE. w is from 0
        to 1 (else a ModelError); the released JTCSE has 0.7.
        """
        if not 0 <= weight <= 1:
            raise ModelError(f"weight={weight} is outside 0..1; the released code has 0.7")
        return cls([first, other], [1 - weight, weight])

    @property
    def backbones(self) -> tuple:
        """The transformers models of all members."""
        return tuple(model for member in self.members for model in member.backbones)

    def encode(self, sentences: Iterable[str], **options) -> Float[Tensor, "n d"]:
        """Embeddings of sentences, in their order; options as in `cselab.models.encode`."""
        sentences = as_sentences(sentences)
        parts = [
            w * member.encode(sentences, **options)
            for member, w in zip(self.members, self.weights, strict=True)
        ]
        return torch.stack(parts).sum(0)

    def save_pretrained(self, folder: str | Path) -> None:
        """Save members to folders `member_1` to `member_k`, and weights to cselab.json, atomically.

        `cselab.load` opens the folder.
        """
        with new_folder(folder) as target:
            for number, member in enumerate(self.members, 1):
                member.save_pretrained(target / f"member_{number}")
            write_card(target, "ensemble", weights=self.weights)

    @classmethod
    def from_pretrained(cls, folder: str | Path) -> "Ensemble":
        """Load a saved ensemble. Raises ModelError for another folder, or a damaged member."""
        weights = read_card(folder, "ensemble", "weights")["weights"]
        folders = [Path(folder) / f"member_{number}" for number in range(1, len(weights) + 1)]
        return cls([open_saved(member) for member in folders], weights)


def open_saved(folder: str | Path, *, base: str | Path | None = None) -> AnyEncoder:
    """Open a folder as the kind of encoder that its card (cselab.json) names; `base` as in
    `cselab.models.load`. Raises ModelError for no card, a damaged one, and that of no encoder."""
    kinds: dict[str, type[SentenceEncoder | TwinEncoder | Ensemble]] = {
        "sentence": SentenceEncoder,
        "twin": TwinEncoder,
        "ensemble": Ensemble,
    }
    kind = read_card(folder)["kind"]
    if kind not in kinds:
        raise ModelError(f"{folder} holds a {kind}; expected an encoder ({', '.join(kinds)})")
    return kinds[kind].from_pretrained(folder, **({"base": base} if base else {}))
