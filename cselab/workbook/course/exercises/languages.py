"""Checks of notebook 14."""

from collections.abc import Callable

import torch
from torch import Tensor

from cselab.workbook.course.checks import exercise, same_number, same_values


@exercise("14.1")
def margin_score(answer: Callable[[Tensor, Tensor, int], Tensor]) -> str:
    """Cosine divided by the mean cosine of both sentences with their nearest ones.

    Artetxe and Schwenk (2019), https://arxiv.org/abs/1811.01136, equation 1 with the ratio.
    """
    draw = torch.Generator().manual_seed(0)
    inputs = []
    for rows, columns, k in ((12, 12, 4), (9, 15, 3), (20, 8, 1)):
        centre = torch.randn(8, generator=draw)  # positive cosines, as an encoder's
        one, two = (
            torch.nn.functional.normalize(centre + torch.randn(n, 8, generator=draw), dim=1)
            for n in (rows, columns)
        )
        inputs.append((one, two, k))

    def means(one: Tensor, two: Tensor, k: int) -> tuple[Tensor, Tensor, Tensor]:
        cosines = one @ two.T
        rows = cosines.topk(k, dim=1).values.mean(1, keepdim=True)
        columns = cosines.topk(k, dim=0).values.mean(0, keepdim=True)
        return cosines, rows, columns

    def margin(one: Tensor, two: Tensor, k: int) -> Tensor:
        cosines, rows, columns = means(one, two, k)
        return cosines / ((rows + columns) / 2)

    def of_rows(one: Tensor, two: Tensor, k: int) -> Tensor:
        cosines, rows, _ = means(one, two, k)
        return cosines / rows

    def of_columns(one: Tensor, two: Tensor, k: int) -> Tensor:
        cosines, _, columns = means(one, two, k)
        return cosines / columns

    def not_halved(one: Tensor, two: Tensor, k: int) -> Tensor:
        return margin(one, two, k) / 2

    def subtracted(one: Tensor, two: Tensor, k: int) -> Tensor:
        cosines, rows, columns = means(one, two, k)
        return cosines - (rows + columns) / 2

    same_values(
        answer,
        margin,
        inputs,
        {
            "Only the first sentence's neighbours are in it. That divides a row by one number, "
            "and its largest entry stays where it was; the second's are what counts.": of_rows,
            "The neighbours of the first sentence count as well.": of_columns,
            "The two means are averaged, not added.": not_halved,
            "The margin is a ratio here, not a difference.": subtracted,
        },
    )
    return "A sentence that is near to everything loses; one cosine alone cannot see that."


@exercise("14.2")
def f1_of_a_hub(answer: float) -> str:
    """One right among 100, of a sentence that is chosen 100 times: (2 / 101) / 100."""
    same_number(
        answer,
        100 * 2 / 101 / 100,
        within=0.001,
        mistakes={
            "That is the accuracy. What is the precision of the sentence that is chosen?": 1,
            "In percent, please.": 2 / 101 / 100,
            "That is the F1 of the one sentence; the score is the mean over all 100.": 200 / 101,
            "That is the precision of the one sentence, over 100; F1 also has its recall.": 0.01,
        },
    )
    return "F1 is below the accuracy wherever two sentences choose the same one."


@exercise("14.3")
def unknown_words(answer: float) -> str:
    """The encoder gets the same ids twice."""
    same_number(
        answer,
        1.0,
        within=1e-6,
        mistakes={
            "That is of their meanings, which the encoder does not get. What are its inputs?": 0.0,
            "Vectors of equal inputs point in the same direction, not in opposite ones.": -1.0,
        },
    )
    return "Left are the number of words, the marks, and words in letters that the tokenizer knows."
