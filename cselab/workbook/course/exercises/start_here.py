"""Checks of notebook 00."""

from collections.abc import Callable

import torch
from torch import Tensor

from cselab.losses.info_nce import cosines
from cselab.workbook.course.checks import exercise, same_values


@exercise("00.1")
def every_cosine(answer: Callable[[Tensor, Tensor], Tensor]) -> str:
    """Cosines of all pairs of rows."""
    draw = torch.Generator().manual_seed(0)
    a, b = torch.randn(3, 6, generator=draw), torch.randn(4, 6, generator=draw)
    same_values(
        answer,
        cosines,
        [(a, b), (2 * a, b)],
        {"These are dot products: divide every row by its length.": lambda x, y: x @ y.T},
    )
    return "Row i, column j: sentence i of the one list with sentence j of the other."
