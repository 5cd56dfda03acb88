"""Weighted sum of encoders, each with its tokenizer (EDFSE; "+UC" of TNCSE and JTCSE)."""

from collections.abc import Iterable, Sequence
from pathlib import Path

import torch
from jaxtyping import Float
from torch import Tensor, nn

from cselab.errors import ModelError
from cselab.models.folder import new_folder, open_card, read_card, write_card
from cselab.models.sentence import SentenceEncoder
from cselab.models.texts import as_sentences
from cselab.models.twin import TwinEncoder


class Ensemble(nn.Module):
    """Weighted sum of encoders: `encode(sentence) = sum_k w_k e_k(sentence)`.

    EDFSE is the unweighted sum of k towers, each trained on round trips through another pivot
    language; `uc` weighs a twin and a third encoder. Distillation turns an ensemble into one tower.

    Args:
        members: Single towers, twins and ensembles of one width; each keeps its own tokenizer.
        weights: One per member; None: all 1.

    Raises:
        ModelError: For no members, another number of weights than members, members of another kind
            (word vectors, a whitened encoder), and widths that differ.

    Examples:
        >>> from cselab import load
        >>> from cselab.models import Ensemble
        >>> members = [load("tiny-bert"), load("plain-bert")]
        >>> Ensemble(members, [0.3, 0.7]).encode(["A dog sleeps."]).shape
        torch.Size([1, 192])
    """

    def __init__(
        self,
        members: Sequence["SentenceEncoder | TwinEncoder | Ensemble"],
        weights: Sequence[float] | None = None,
    ):
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
    def uc(
        cls,
        first: "SentenceEncoder | TwinEncoder | Ensemble",
        other: "SentenceEncoder | TwinEncoder | Ensemble",
        *,
        weight: float = 0.7,
    ) -> "Ensemble":
        """The "+UC" ensemble `(1 - w) first + w other` (JTCSE, https://arxiv.org/abs/2505.02366).

        Args:
            first: A twin; in RankCSE+UC a single tower.
            other: The papers' is InfoCSE.
            weight: w, from 0 to 1; the released JTCSE has 0.7.

        Raises:
            ModelError: For a weight outside 0..1.
        """
        if not 0 <= weight <= 1:
            raise ModelError(
                f"weight={weight} is outside 0..1; it is the other encoder's share, 0.7 in the "
                "released code"
            )
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
        """Save each member to a folder of its own, `member_1` to `member_k`, and cselab.json.

        Atomically; cselab.json has the weights. `cselab.load` opens the folder.
        """
        with new_folder(folder) as target:
            for name, member in zip(_member_names(len(self.members)), self.members, strict=True):
                member.save_pretrained(target / name)
            write_card(target, "ensemble", weights=self.weights)

    @classmethod
    def from_pretrained(cls, folder: str | Path) -> "Ensemble":
        """Load a saved ensemble.

        Raises:
            ModelError: For another folder, or a damaged member.
        """
        (weights,) = read_card(folder, "ensemble", "Ensemble", "weights")
        members = [open_saved(Path(folder) / name) for name in _member_names(len(weights))]
        return cls(members, weights)


def open_saved(folder: str | Path) -> SentenceEncoder | TwinEncoder | Ensemble:
    """Open a folder with a card (cselab.json) as the kind of encoder that the card names.

    Raises:
        ModelError: If the folder has no card, a damaged one, or that of no encoder.
    """
    kinds: dict[str, type[SentenceEncoder | TwinEncoder | Ensemble]] = {
        "sentence": SentenceEncoder,
        "twin": TwinEncoder,
        "ensemble": Ensemble,
    }
    kind = open_card(folder, "save_pretrained or `cselab export`")["kind"]
    if kind not in kinds:
        raise ModelError(
            f"{folder} holds a {kind}: expected an encoder, a folder that save_pretrained wrote"
        )
    return kinds[kind].from_pretrained(folder)


def _member_names(number: int) -> list[str]:
    return [f"member_{i}" for i in range(1, number + 1)]
