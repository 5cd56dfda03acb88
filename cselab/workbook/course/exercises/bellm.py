"""Checks of notebook 10."""

from collections.abc import Callable

import torch
from torch import Tensor

from cselab.workbook.course.checks import exercise, same_number, same_values


@exercise("10.1")
def mask_of_a_decoder(answer: Callable[[int], Tensor]) -> str:
    """0 on and below the diagonal, -inf above."""

    def mask(length: int) -> Tensor:
        return torch.full((length, length), -torch.inf).triu(1)

    same_values(
        answer,
        mask,
        [(4,), (7,)],
        {
            "A token may read itself: the diagonal is 0.": (
                lambda n: torch.full((n, n), -torch.inf).triu(0)
            ),
            "This lets a token read what follows; transpose it.": lambda n: mask(n).T,
            "These are ones and zeros; the mask is added to the scores: 0 and -inf.": (
                lambda n: torch.ones(n, n).tril()
            ),
        },
    )
    return "The last row is all 0: the last token reads everything, mask or not."


@exercise("10.2")
def negatives_of_triplets(answer: float) -> str:
    """2N - 1."""
    same_number(
        answer,
        63,
        within=0.5,
        mistakes={
            "The contradicting sentences of the others count too.": 31,
            "One of the 2N candidates is the positive.": 64,
            "The other anchors are not candidates: only entailed and contradicting sentences.": 95,
        },
    )
    return "N − 1 entailed sentences of others, and N contradicting ones, its own included."
