"""Checks of notebook 02."""

import math
from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor

from cselab.losses import info_nce
from cselab.workbook.course.checks import Wrong, exercise, same_number, same_values


@exercise("02.1")
def other_layout(answer: Callable[[Tensor, Tensor, float], Tensor]) -> str:
    """InfoNCE over all 2N views."""
    draw = torch.Generator().manual_seed(0)
    inputs = [
        (*torch.randn(2, n, 16, generator=draw), tau) for n, tau in ((8, 0.05), (5, 0.5), (3, 1.0))
    ]
    same_values(
        answer,
        lambda a, b, tau: info_nce(a, b, temperature=tau, layout="all"),
        inputs,
        {
            "This is the loss of the page: N rows. Let every view, of a and of b, be a row.": (
                lambda a, b, tau: info_nce(a, b, temperature=tau)
            ),
            "A view must not be among its own candidates: its cosine with itself is 1. Set the "
            "diagonal to -inf.": _with_itself,
            "Take the mean over the 2N rows, not their sum.": (
                lambda a, b, tau: 2 * len(a) * info_nce(a, b, temperature=tau, layout="all")
            ),
        },
    )
    return "Each view now has 2N − 2 negatives, those of its own side too (released TNCSE, JTCSE)."


def _with_itself(a: Tensor, b: Tensor, temperature: float) -> Tensor:
    both = F.normalize(torch.cat([a, b]), dim=1)
    return F.cross_entropy(both @ both.T / temperature, torch.arange(len(both)).roll(len(a)))


@exercise("02.2")
def weight_of_a_hard_negative(answer: float) -> str:
    """How many times the weight of a negative at cosine 0.5 one at 0.9 has, at τ = 0.05."""
    right = math.exp(0.4 / 0.05)
    same_number(
        answer,
        right,
        within=0.01 * right,
        mistakes={
            "Divide the difference of the cosines by the temperature before the exponential.": (
                math.exp(0.4)
            ),
            "This is the exponent; the weight is its exponential.": 0.4 / 0.05,
        },
    )
    return "At a low temperature the nearest negatives have the larger part of the gradient."


@exercise("02.3")
def concatenation(answer: Callable[[Tensor, Tensor], Tensor]) -> str:
    """One vector a sentence from both towers', side by side."""
    draw = torch.Generator().manual_seed(1)
    towers = (torch.randn(4, 8, generator=draw), torch.randn(4, 8, generator=draw))
    found = answer(*towers)
    if found is not None and found is not ... and found.shape == towers[0].shape:
        raise Wrong("This has as many features as one tower; side by side there are twice as many.")
    same_values(answer, lambda i, ii: torch.cat([i, ii], dim=1), [towers])
    return (
        "Its dot products are the sums of the towers' own; those of the sum h_I + h_II have the "
        "products of I with II besides."
    )
