"""Checks of notebook 03."""

import math
from collections.abc import Callable

import torch
from torch import Tensor

from cselab.losses import icnce, info_nce
from cselab.workbook.course.checks import Wrong, exercise, same_number, same_values


@exercise("03.1")
def across_towers(answer: Callable[[Tensor, Tensor, float], Tensor]) -> str:
    """ICNCE in the paper's form."""
    draw = torch.Generator().manual_seed(0)
    inputs = [(*torch.randn(2, 2, n, 16, generator=draw), tau) for n, tau in ((6, 0.05), (4, 0.5))]

    def nce(a: Tensor, b: Tensor, tau: float) -> Tensor:
        return info_nce(a, b, temperature=tau)

    same_values(
        answer,
        lambda i, ii, tau: icnce(i, ii, temperature=tau),
        inputs,
        {
            "This is the first view alone; add the second and divide by two.": (
                lambda i, ii, tau: nce(i[0], ii[0], tau)
            ),
            "This is the sum of the two views; take their mean.": (
                lambda i, ii, tau: nce(i[0], ii[0], tau) + nce(i[1], ii[1], tau)
            ),
            "Compare the same view of both towers: cls_i[0] with cls_ii[0].": (
                lambda i, ii, tau: (nce(i[0], ii[1], tau) + nce(i[1], ii[0], tau)) / 2
            ),
            "Rows and columns are exchanged: tower I has the rows.": (
                lambda i, ii, tau: (nce(ii[0], i[0], tau) + nce(ii[1], i[1], tau)) / 2
            ),
        },
    )
    return "In training a coin says at each step which tower has the rows."


@exercise("03.2")
def weight_of_one(answer: float) -> str:
    """The cosine at which -log s is 1."""
    same_number(
        answer,
        math.exp(-1),
        within=0.005,
        mistakes={
            "That is log base 10; the losses use the natural logarithm.": 0.1,
            "exp(1) is above 1, and a cosine is not.": math.e,
        },
    )
    return "Towers that agree (s near 1) hardly feel the term; it is for those that do not."


@exercise("03.3")
def parameters_of_a_cael(answer: int) -> str:
    """CAELs have no parameters."""
    if answer != 0:
        raise Wrong(
            "A CAEL reads the queries and keys of one tower and the values of the other: both are "
            "there already."
        )
    return "None: a CAEL costs arithmetic in training, and nothing at inference."
