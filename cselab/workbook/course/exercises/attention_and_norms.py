"""Checks of notebook 06."""

from collections.abc import Callable

import torch
from torch import Tensor

from cselab.workbook.course.checks import exercise, same_number, same_values


@exercise("06.1")
def received(answer: Callable[[Tensor], Tensor]) -> str:
    """The mean over heads and queries."""
    draw = torch.Generator().manual_seed(0)
    attention = torch.randn(3, 5, 5, generator=draw).softmax(-1)
    same_values(
        answer,
        lambda a: a.mean(dim=(0, 1)),
        [(attention,), (attention[:1],)],
        {
            "These are rows: what each query gives is always 1. Average over the queries.": (
                lambda a: a.mean(dim=(0, 2))
            ),
            "Take means, not sums, over heads and queries.": lambda a: a.sum(dim=(0, 1)),
        },
    )
    return "It sums to 1: what a sink takes, the words do not get."


@exercise("06.2")
def energy_of_equal_contexts(answer: float) -> str:
    """1 / sqrt(16)."""
    same_number(
        answer,
        0.25,
        within=0.002,
        mistakes={
            "The Frobenius norm adds squares: take a root.": 1 / 16,
            "H has the other tokens only, 16 of the 17.": 17**-0.5,
        },
    )
    return "So the energy falls as one over the root of the length, whatever the model does."
