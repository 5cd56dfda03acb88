"""Exercises whose answer is a function: losses and their gradients."""

import torch
import torch.nn.functional as F
from torch import Tensor

from cselab.losses import barlow_twins, cross_correlation, icnce, info_nce
from cselab.workbook.course.checks import Function, randn


def nce(a: Tensor, b: Tensor, temperature: float) -> Tensor:
    """InfoNCE with a row a sentence."""
    return info_nce(a, b, temperature=temperature)


def nce_with_itself(a: Tensor, b: Tensor, temperature: float) -> Tensor:
    """02.1 without -inf on the diagonal."""
    both = F.normalize(torch.cat([a, b]), dim=1)
    return F.cross_entropy(both @ both.T / temperature, torch.arange(len(both)).roll(len(a)))


def barlow_of_everything(a: Tensor, b: Tensor, weight: float) -> Tensor:
    """09.1 with the diagonal in the second sum."""
    c = cross_correlation(a, b)
    return (1 - c.diagonal()).square().sum() + weight * c.square().sum()


def over(x: Tensor, margin: float) -> Tensor:
    """11.1: by how much each cosine is over the margin."""
    unit = F.normalize(x, dim=1)
    return torch.relu(unit @ unit.T - margin)


def off_diagonal(x: Tensor) -> Tensor:
    """Entries off the diagonal, in a row."""
    return x[~torch.eye(len(x), dtype=torch.bool)]


LOSSES = {
    "02.1": Function(
        lambda a, b, tau: info_nce(a, b, temperature=tau, layout="all"),
        [(*randn(2, n, 16, seed=n), tau) for n, tau in ((8, 0.05), (5, 0.5), (3, 1.0))],
        "Each view now has 2N − 2 negatives, those of its own side too (released TNCSE, JTCSE).",
        {
            "This is the loss of the page: N rows. Let every view, of a and of b, be a row.": nce,
            "A view must not be among its own candidates: its cosine with itself is 1. Set the "
            "diagonal to -inf.": nce_with_itself,
            "Take the mean over the 2N rows, not their sum.": (
                lambda a, b, tau: 2 * len(a) * info_nce(a, b, temperature=tau, layout="all")
            ),
        },
    ),
    "03.1": Function(
        lambda i, ii, tau: icnce(i, ii, temperature=tau),
        [(*randn(2, 2, n, 16, seed=n), tau) for n, tau in ((6, 0.05), (4, 0.5))],
        "In training a coin says at each step which tower has the rows.",
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
    ),
    "04.1": Function(
        lambda a, b, rate: -rate * a @ (a + b),
        [(randn(9), randn(9, seed=1), 0.1), (randn(9), -randn(9, seed=1), 0.01)],
        "Where the two point apart (negative cosine), the second term can raise the first loss.",
        {
            "A step goes downhill: the sign is the other one.": lambda a, b, r: r * a @ (a + b),
            "The step follows both gradients, so the second one changes the first loss too.": (
                lambda a, b, r: -r * a @ a
            ),
            "This is how far the gradients agree; the first one's own length counts as well.": (
                lambda a, b, r: -r * a @ b
            ),
        },
    ),
    "09.1": Function(
        lambda a, b, weight: barlow_twins(a, b, off_diagonal_weight=weight),
        [(*(2 + randn(2, 8, 5)), weight) for weight in (0.012, 1.0)],
        "It can be 0 only if C is the identity, which N − 1 < d sentences cannot reach.",
        {
            "The features have to be centred before they are scaled.": (
                lambda a, b, w: barlow_twins(a, b, off_diagonal_weight=w, centre=False)
            ),
            "The second sum is over the entries off the diagonal only.": barlow_of_everything,
            "This weighs nothing: the second sum has the weight λ_BT.": (
                lambda a, b, w: barlow_twins(a, b, off_diagonal_weight=1.0)
            ),
        },
    ),
    "11.1": Function(
        lambda x, m: off_diagonal(over(x, m)).mean(),
        [(3 * randn(9, 4), m) for m in (0.3, 0.0)],
        "Only pairs nearer than m feel it: a hard margin in the place of a soft share.",
        {
            "A sentence with itself is no pair: leave the diagonal out.": (
                lambda x, m: over(x, m).mean()
            ),
            "Scale the vectors to length 1: these are dot products, not cosines.": (
                lambda x, m: off_diagonal(torch.relu(x @ x.T - m)).mean()
            ),
            "This is the sum; take the mean over the pairs.": (
                lambda x, m: off_diagonal(over(x, m)).sum()
            ),
        },
    ),
}
