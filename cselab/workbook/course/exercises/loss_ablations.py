"""Checks of notebook 04."""

from collections.abc import Callable

import torch
from torch import Tensor

from cselab.evaluation import compare_seeds
from cselab.workbook.course.checks import exercise, same_number, same_values

DIFFERENCES = (0.9, -0.2, 0.6, 0.1, 0.4)


@exercise("04.1")
def first_order_change(answer: Callable[[Tensor, Tensor, float], Tensor]) -> str:
    """-rate g1 (g1 + g2)."""
    draw = torch.Generator().manual_seed(0)
    one, two = torch.randn(2, 9, generator=draw)
    same_values(
        answer,
        lambda a, b, rate: -rate * a @ (a + b),
        [(one, two, 0.1), (one, -two, 0.01)],
        {
            "A step goes downhill: the sign is the other one.": lambda a, b, r: r * a @ (a + b),
            "The step follows both gradients, so the second one changes the first loss too.": (
                lambda a, b, r: -r * a @ a
            ),
            "This is how far the gradients agree; the first one's own length counts as well.": (
                lambda a, b, r: -r * a @ b
            ),
        },
    )
    return "Where the two point apart (negative cosine), the second term can raise the first loss."


@exercise("04.2")
def interval_over_seeds(answer: float) -> str:
    """The lower end of the t interval of a mean of five differences."""
    found = compare_seeds(list(DIFFERENCES), [0.0] * len(DIFFERENCES))
    half = found.mean - found.low
    same_number(
        answer,
        found.low,
        within=0.01,
        mistakes={
            "Divide the standard deviation by the root of the number of seeds.": (
                found.mean - half * len(DIFFERENCES) ** 0.5
            ),
            "With 1.96 the interval is that of a normal distribution; five seeds need t.": (
                found.mean - half * 1.96 / 2.776
            ),
            "This is the upper end.": found.high,
        },
    )
    return f"{found.low:+.2f} to {found.high:+.2f}: zero is inside, five seeds do not settle it."
