"""Checks of notebook 07."""

import itertools
from collections.abc import Callable, Mapping

import torch
from torch import Tensor

from cselab.evaluation import TaskScore, uniformity
from cselab.workbook.course.checks import exercise, same_number, same_values


@exercise("07.1")
def uniformity_of_vectors(answer: Callable[[Tensor], Tensor]) -> str:
    """Wang and Isola's uniformity."""
    draw = torch.Generator().manual_seed(0)
    inputs = [(scale * torch.randn(7, 5, generator=draw),) for scale in (1.0, 3.0)]

    def mean_first(x: Tensor) -> Tensor:
        unit = torch.nn.functional.normalize(x, dim=1)
        return (-2 * torch.pdist(unit).square()).mean()

    same_values(
        answer,
        uniformity,
        inputs,
        {
            "Scale the vectors to length 1 first.": (
                lambda x: (-2 * torch.pdist(x).square()).exp().mean().log()
            ),
            "Take the mean of the exponentials and then its logarithm.": mean_first,
        },
    )
    return "0 if all vectors are one; the more evenly they cover the sphere, the lower."


@exercise("07.2")
def a_monotone_change(answer: float) -> str:
    """Ranks do not change."""
    same_number(answer, 0.0, within=1e-6)
    return "Cubing keeps the order of all cosines, negative ones too, so it keeps every rank."


@exercise("07.3")
def intervals_apart(answer: int, scores: Mapping[str, TaskScore]) -> str:
    """The number of pairs of methods whose intervals do not overlap."""
    apart = [
        f"{a} / {b}"
        for a, b in itertools.combinations(scores, 2)
        if scores[a].high < scores[b].low or scores[b].high < scores[a].low
    ]
    every = len(scores) * (len(scores) - 1) // 2
    same_number(
        answer,
        len(apart),
        within=0.5,
        mistakes={"This is the number of those that do overlap.": every - len(apart)},
    )
    return (
        f"{', '.join(apart) or 'None'}. Two models on the same pairs are compared pair by pair, "
        "which is much narrower; and over seeds, two methods are another question."
    )
