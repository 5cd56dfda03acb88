"""Checks of notebook 13."""

from collections.abc import Callable

import torch
from torch import Tensor

from cselab.workbook.course.checks import Wrong, exercise, same_number, same_values


@exercise("13.1")
def mean_reciprocal_rank(answer: Callable[..., float]) -> str:
    """Mean over queries of one divided by the rank of the first relevant document."""
    draw = torch.Generator().manual_seed(0)
    inputs = []
    for queries, documents, k in ((30, 40, 10), (50, 100, 5), (20, 8, 10)):
        similar = torch.rand(queries, documents, generator=draw)
        relevant = (torch.rand(queries, documents, generator=draw) < 0.06).long()
        relevant[:, 0] = 1  # each query has one
        inputs.append((similar, relevant, k))

    def first(similar: Tensor, relevant: Tensor, k: int) -> Tensor:
        return relevant.gather(1, similar.argsort(dim=1, descending=True)[:, :k])

    def reciprocal(ranked: Tensor) -> Tensor:
        places = torch.arange(1, ranked.shape[1] + 1)
        return (ranked / places).amax(1)

    def of_all(similar: Tensor, relevant: Tensor, k: int) -> Tensor:
        ranked = first(similar, relevant, k)
        return (1 / (ranked.argmax(1) + 1)).mean()

    def uncut(similar: Tensor, relevant: Tensor, k: int) -> Tensor:
        return reciprocal(first(similar, relevant, similar.shape[1])).mean()

    same_values(
        answer,
        lambda similar, relevant, k: reciprocal(first(similar, relevant, k)).mean(),
        inputs,
        {
            "A query without a relevant document among the first k counts 0, not 1.": of_all,
            "Only the first k documents count.": uncut,
            "The most similar document has rank 1: sort in descending order.": (
                lambda similar, relevant, k: reciprocal(first(-similar, relevant, k)).mean()
            ),
        },
    )
    return "One relevant document early is enough; nDCG also asks for the others."


@exercise("13.2")
def random_map(answer: float) -> str:
    """(1 + 1/2 + … + 1/10) / 10."""
    same_number(
        answer,
        100 * sum(1 / rank for rank in range(1, 11)) / 10,
        within=0.05,
        mistakes={
            "That is how often it is first; a later rank counts too.": 10,
            "The mean of 1/r is not 1 divided by the mean rank.": 100 / 5.5,
            "In percent, please.": sum(1 / rank for rank in range(1, 11)) / 10,
        },
    )
    return "So 29 on such a task is chance; a table without it looks better than it is."


@exercise("13.3")
def average_precision_of_chance(answer: tuple[float, float]) -> str:
    """The share of positive pairs."""
    even, uneven = answer
    if abs(even - uneven) < 0.5:
        raise Wrong("What is the precision of a random ranking if few of the pairs are entailed?")
    same_number(even, 50, within=1)
    same_number(
        uneven, 5, within=1, mistakes={"95 % of the pairs are contradicted, not entailed.": 95}
    )
    return "Chance is the share of positives: it differs from task to task, unlike AUC's 50 %."
