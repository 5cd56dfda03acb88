"""Exercises whose answer is a function: vectors, attention and text."""

import re

import torch
import torch.nn.functional as F
from torch import Tensor

from cselab.losses.info_nce import cosines
from cselab.workbook.course.checks import Function, randn


def numbers(text: str) -> list[str]:
    """01.1: runs of digits."""
    return re.findall(r"\d+", text)


def lost(one: list[str], two: list[str]) -> list[set[str]]:
    """01.1: the numbers of each sentence that its round trip does not have."""
    return [set(numbers(a)) - set(numbers(b)) for a, b in zip(one, two, strict=True)]


def mask(length: int) -> Tensor:
    """10.1: 0 on and below the diagonal, -inf above."""
    return torch.full((length, length), -torch.inf).triu(1)


def agreement(cosines: Tensor, ratings: Tensor) -> Tensor:
    """Of each two test pairs: above 0 where cosines and ratings order them alike, (n, n)."""
    return (cosines[:, None] - cosines) * (ratings[:, None] - ratings)


def in_order(cosines: Tensor, ratings: Tensor) -> Tensor:
    """07.1: share of the couples with different ratings that the cosines order alike."""
    found = agreement(cosines, ratings)
    return found[ratings[:, None] != ratings].gt(0).double().mean()


NORMALISED = F.layer_norm(randn(5, 12), (12,))
MEMBERS = [scale * randn(6, 8, seed=seed) for seed, scale in enumerate((1.0, 5.0, 0.2))]
ATTENTION = randn(3, 5, 5).softmax(-1)
NUMBERED = {
    "in 1990 and 1991": "in 1991 and 1990",
    "a number": "1 number",
    "5 of 12": "5 of 21",
    "12 men, 7 women, 3 dogs": "twelve men, seven women, three dogs",
    "a man": "one man of 1990",
    "born in 1984": "born in 1984",
}
COSINES, RATINGS = randn(8, seed=1), torch.tensor([0.0, 1.0, 1.0, 2.0, 3.0, 3.0, 3.0, 5.0])

ENCODERS = {
    "00.1": Function(
        cosines,
        [(randn(3, 6), randn(4, 6, seed=1)), (2 * randn(3, 6), randn(4, 6, seed=1))],
        "Row i, column j: sentence i of the one list with sentence j of the other.",
        {"These are dot products: divide every row by its length.": lambda x, y: x @ y.T},
    ),
    "01.1": Function(
        lambda one, two: sum(map(bool, lost(one, two))) / len(one),
        [(list(NUMBERED), list(NUMBERED.values())), (["5 dogs"], ["5 dogs"])],
        "Compare it with the share that the judge calls lost.",
        {
            "A number that only the round trip has is not lost: count those of the sentence.": (
                lambda one, two: sum(map(bool, lost(two, one))) / len(one)
            ),
            "This counts lost numbers; count sentences that lose at least one.": (
                lambda one, two: sum(map(len, lost(one, two))) / len(one)
            ),
            "Another order of the same numbers loses none: compare sets.": (
                lambda one, two: (
                    sum(numbers(a) != numbers(b) for a, b in zip(one, two, strict=True)) / len(one)
                )
            ),
        },
    ),
    "05.1": Function(
        lambda x, g: (g * x).norm(dim=1),
        [(NORMALISED, randn(12).abs() + 0.5), (NORMALISED, torch.ones(12))],
        "With equal gains every length is g √d; with others it depends on the sentence.",
        {
            "This is the squared length; take its root.": lambda x, g: (g * x).square().sum(1),
            "The gain is squared with the feature: sum over (g x)², not g x².": (
                lambda x, g: (g * x.square()).sum(1).sqrt()
            ),
            "The gain belongs to each feature; this multiplies its mean with the length.": (
                lambda x, g: g.mean() * x.norm(dim=1)
            ),
        },
    ),
    "06.1": Function(
        lambda a: a.mean(dim=(0, 1)),
        [(ATTENTION,), (ATTENTION[:1],)],
        "It sums to 1: what a sink takes, the words do not get.",
        {
            "These are rows: what each query gives is always 1. Average over the queries.": (
                lambda a: a.mean(dim=(0, 2))
            ),
            "Take means, not sums, over heads and queries.": lambda a: a.sum(dim=(0, 1)),
        },
    ),
    "07.1": Function(
        in_order,
        [(COSINES, RATINGS), (-COSINES, RATINGS)],
        "Chance is 0.5: a correlation of 0 is half of the couples, one of 1 all of them.",
        {
            "Pairs of equal rating have no order: divide by the couples that have one.": (
                lambda c, g: agreement(c, g).gt(0).double().mean()
            ),
            "This is the number of couples in order; divide by that of all with an order.": (
                lambda c, g: agreement(c, g).gt(0).sum()
            ),
            "These are the couples in the wrong order.": lambda c, g: 1 - in_order(c, g),
        },
    ),
    "08.1": Function(
        lambda members: sum(x / x.norm(dim=1).mean() for x in members),
        [(MEMBERS,), (MEMBERS[:2],)],
        "Now no member has a larger weight than another, on average.",
        {
            "This is the plain sum: divide each member by its mean length first.": sum,
            "This makes each vector as long as every other; scale a member as a whole.": (
                lambda members: sum(F.normalize(x, dim=1) for x in members)
            ),
        },
    ),
    "10.1": Function(
        mask,
        [(4,), (7,)],
        "The last row is all 0: the last token reads everything, mask or not.",
        {
            "A token may read itself: the diagonal is 0.": (
                lambda n: torch.full((n, n), -torch.inf).triu(0)
            ),
            "This lets a token read what follows; transpose it.": lambda n: mask(n).T,
            "These are ones and zeros; the mask is added to the scores: 0 and -inf.": (
                lambda n: torch.ones(n, n).tril()
            ),
        },
    ),
}
