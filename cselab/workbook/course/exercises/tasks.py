"""Exercises whose answer is a function: scores of search and translation, attention."""

import torch
import torch.nn.functional as F
from torch import Tensor

from cselab.workbook.course.checks import Function, randn


def ranked(similar: Tensor, relevant: Tensor, k: int) -> Tensor:
    """13.1: relevance of the k documents that are most similar."""
    return relevant.gather(1, similar.argsort(dim=1, descending=True)[:, :k])


def reciprocal(first: Tensor) -> Tensor:
    """13.1: 1 / rank of the first relevant document; 0 if none is."""
    return (first / torch.arange(1, first.shape[1] + 1)).amax(1).mean()


def searches(queries: int, documents: int, k: int) -> tuple[Tensor, Tensor, int]:
    """13.1: similarities, and relevance with a relevant document for each query."""
    draw = torch.Generator().manual_seed(queries)
    similar = torch.rand(queries, documents, generator=draw)
    relevant = (torch.rand(queries, documents, generator=draw) < 0.06).long()
    relevant[:, 0] = 1
    return similar, relevant, k


def neighbours(one: Tensor, two: Tensor, k: int) -> tuple[Tensor, Tensor, Tensor]:
    """14.1: cosines, and the mean of the k largest of each row and of each column.

    Artetxe and Schwenk (2019), https://arxiv.org/abs/1811.01136, equation 1 with the ratio.
    """
    similar = one @ two.T
    rows = similar.topk(k, dim=1).values.mean(1, keepdim=True)
    return similar, rows, similar.topk(k, dim=0).values.mean(0, keepdim=True)


def margin_score(one: Tensor, two: Tensor, k: int) -> Tensor:
    """14.1: cosine divided by the mean cosine of both sentences with their nearest ones."""
    similar, rows, columns = neighbours(one, two, k)
    return similar / ((rows + columns) / 2)


def languages(rows: int, columns: int, k: int) -> tuple[Tensor, Tensor, int]:
    """14.1: unit vectors with positive cosines, as an encoder's."""
    one, two = randn(8) + randn(rows, 8, seed=rows), randn(8) + randn(columns, 8, seed=columns + 1)
    return F.normalize(one, dim=1), F.normalize(two, dim=1), k


def attention(scores: Tensor, values: Tensor, mask: Tensor) -> Tensor:
    """15.1: attention on tokens alone."""
    return scores.masked_fill(mask[None] == 0, -torch.inf).softmax(-1) @ values


def padded(length: int, tokens: int) -> tuple[Tensor, Tensor, Tensor]:
    """15.1: scores, values and mask of a sentence with padding behind it."""
    mask = (torch.arange(length) < tokens).long()
    return randn(length, length, seed=length), randn(length, 4, seed=tokens), mask


TASKS = {
    "13.1": Function(
        lambda *arguments: reciprocal(ranked(*arguments)),
        [searches(30, 40, 10), searches(50, 100, 5), searches(20, 8, 10)],
        "One relevant document early is enough; nDCG also asks for the others.",
        {
            "A query without a relevant document among the first k counts 0, not 1.": (
                lambda *arguments: (1 / (ranked(*arguments).argmax(1) + 1)).mean()
            ),
            "Only the first k documents count.": (
                lambda similar, relevant, k: reciprocal(ranked(similar, relevant, len(similar.T)))
            ),
            "The most similar document has rank 1: sort in descending order.": (
                lambda similar, relevant, k: reciprocal(ranked(-similar, relevant, k))
            ),
        },
    ),
    "14.1": Function(
        margin_score,
        [languages(12, 12, 4), languages(9, 15, 3), languages(20, 8, 1)],
        "A sentence that is near to everything loses; one cosine alone cannot see that.",
        {
            "Only the first sentence's neighbours are in it. That divides a row by one number, "
            "and its largest entry stays where it was; the second's are what counts.": (
                lambda *x: neighbours(*x)[0] / neighbours(*x)[1]
            ),
            "The neighbours of the first sentence count as well.": (
                lambda *x: neighbours(*x)[0] / neighbours(*x)[2]
            ),
            "The two means are averaged, not added.": lambda *x: margin_score(*x) / 2,
            "The margin is a ratio here, not a difference.": (
                lambda *x: neighbours(*x)[0] - sum(neighbours(*x)[1:]) / 2
            ),
        },
    ),
    "15.1": Function(
        attention,
        [padded(6, 4), padded(5, 5), padded(9, 2)],
        "The padded positions have outputs too; nothing reads them.",
        {
            "This reads the padding. Set its scores to -inf before the softmax.": (
                lambda scores, values, mask: scores.softmax(-1) @ values
            ),
            "A score of 0 still has a weight, exp(0) = 1; -inf has none.": (
                lambda scores, values, mask: (scores * mask).softmax(-1) @ values
            ),
            "After the softmax the weights no longer sum to 1; mask the scores before it.": (
                lambda scores, values, mask: (scores.softmax(-1) * mask) @ values
            ),
        },
    ),
}
