"""Checks of notebook 11."""

import math
from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor

from cselab.workbook.course.checks import exercise, same_number, same_values


@exercise("11.1")
def margin(answer: Callable[[Tensor, float], Tensor]) -> str:
    """Mean over different sentences of relu(cos - m)."""
    draw = torch.Generator().manual_seed(0)
    inputs = [(3 * torch.randn(9, 4, generator=draw), m) for m in (0.3, 0.0)]

    def over(x: Tensor, m: float) -> Tensor:
        unit = F.normalize(x, dim=1)
        return torch.relu(unit @ unit.T - m)

    def right(x: Tensor, m: float) -> Tensor:
        return over(x, m)[~torch.eye(len(x), dtype=torch.bool)].mean()

    same_values(
        answer,
        right,
        inputs,
        {
            "A sentence with itself is no pair: leave the diagonal out.": (
                lambda x, m: over(x, m).mean()
            ),
            "Scale the vectors to length 1: these are dot products, not cosines.": (
                lambda x, m: torch.relu(x @ x.T - m)[~torch.eye(len(x), dtype=torch.bool)].mean()
            ),
            "This is the sum; take the mean over the pairs.": (
                lambda x, m: right(x, m) * len(x) * (len(x) - 1)
            ),
        },
    )
    return "Only pairs nearer than m feel it: a hard margin in the place of a soft share."


@exercise("11.2")
def share(answer: float) -> str:
    """A softmax by hand."""
    weights = [math.exp(c / 0.1) for c in (0.8, 0.7, 0.2, 0.0)]
    same_number(
        answer,
        weights[0] / sum(weights),
        within=0.003,
        mistakes={
            "The positive is in the denominator too.": weights[0] / sum(weights[1:]),
            "Divide the cosines by τ before the exponential.": math.exp(0.8)
            / sum(math.exp(c) for c in (0.8, 0.7, 0.2, 0.0)),
        },
    )
    return "Nearly all of the rest belongs to the one negative at 0.7."
