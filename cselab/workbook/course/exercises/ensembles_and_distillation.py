"""Checks of notebook 08."""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from cselab.workbook.course.checks import exercise, same_number, same_values


@exercise("08.1")
def members_of_equal_length(answer: Callable[[Sequence[Tensor]], Tensor]) -> str:
    """The sum of members scaled to mean length 1."""
    draw = torch.Generator().manual_seed(0)
    vectors = [scale * torch.randn(6, 8, generator=draw) for scale in (1.0, 5.0, 0.2)]
    same_values(
        answer,
        lambda members: sum(x / x.norm(dim=1).mean() for x in members),
        [(vectors,), (vectors[:2],)],
        {
            "This is the plain sum: divide each member by its mean length first.": (
                lambda members: sum(members)
            ),
            "This makes each vector as long as every other; scale a member as a whole.": (
                lambda members: sum(x / x.norm(dim=1, keepdim=True) for x in members)
            ),
        },
    )
    return "Now no member has a larger weight than another, on average."


@exercise("08.2")
def correlation_of_a_student(answer: float) -> str:
    """1 / sqrt(1.36)."""
    same_number(
        answer,
        1.36**-0.5,
        within=0.005,
        mistakes={
            "The student's own variance is larger than the teacher's, by the error.": 0.64**0.5,
            "This is the share of explained variance, not a correlation.": 0.64,
        },
    )
    return "A student can miss a third of the variance and still order pairs much like its teacher."
