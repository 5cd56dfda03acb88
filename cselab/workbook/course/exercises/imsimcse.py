"""Checks of notebook 09."""

from collections.abc import Callable

import torch
from torch import Tensor

from cselab.losses import barlow_twins, cross_correlation
from cselab.workbook.course.checks import exercise, same_number, same_values


@exercise("09.1")
def barlow(answer: Callable[[Tensor, Tensor, float], Tensor]) -> str:
    """Barlow Twins' loss, centred, without artificial rows."""
    draw = torch.Generator().manual_seed(0)
    inputs = [(*(2 + torch.randn(2, 8, 5, generator=draw)), weight) for weight in (0.012, 1.0)]

    def everything(a: Tensor, b: Tensor, weight: float) -> Tensor:
        c = cross_correlation(a, b)
        return (1 - c.diagonal()).square().sum() + weight * c.square().sum()

    same_values(
        answer,
        lambda a, b, weight: barlow_twins(a, b, off_diagonal_weight=weight),
        inputs,
        {
            "The features have to be centred before they are scaled.": (
                lambda a, b, w: barlow_twins(a, b, off_diagonal_weight=w, centre=False)
            ),
            "The second sum is over the entries off the diagonal only.": everything,
            "This weighs nothing: the second sum has the weight λ_BT.": (
                lambda a, b, w: barlow_twins(a, b, off_diagonal_weight=1.0)
            ),
        },
    )
    return "It can be 0 only if C is the identity, which N − 1 < d sentences cannot reach."


@exercise("09.2")
def rows_for_the_identity(answer: float) -> str:
    """N + M - 1 >= 768 with N = 64."""
    same_number(
        answer,
        705,
        within=0.5,
        mistakes={
            "Centring takes one from the rank: one row more.": 704,
            "The sentences of the batch count too: N + M − 1 = d.": 768,
        },
    )
    return "With fewer the identity stays out of reach, whatever is trained."
