"""Losses on orders: of a sentence's neighbours in the batch (RankCSE), and of pairs by how alike they are (CoSENT, AnglE)."""

import math

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

from cselab.errors import DataError
from cselab.losses._inputs import at_least_float32, check_negatives, check_shapes, check_temperature
from cselab.losses.info_nce import cosines

List = Float[Tensor, "N M"]


def neighbour_lists(rows: Float[Tensor, "N d"], columns: Float[Tensor, "N d"]) -> Float[Tensor, "N N-1"]:
    """Cosines of each row with the other sentences' columns, its own left out (RankCSE: S(x_i), j != i)."""
    check_shapes("N d", rows=rows, columns=columns)
    check_negatives(len(rows))
    n = len(rows)
    return cosines(rows, columns)[~torch.eye(n, dtype=torch.bool, device=rows.device)].view(n, n - 1)


def rank_consistency(
    a: Float[Tensor, "N d"], b: Float[Tensor, "N d"], *, temperature: float = 0.05
) -> Float[Tensor, ""]:
    """Jensen-Shannon divergence between what the two views say of a sentence's neighbours, a mean over sentences (RankCSE).

    0 for equal lists and at most log 2. (A popular re-implementation clamps log-probabilities from below at a small *positive* number;
    its divergence is a constant.)

    Raises DataError for wrong shapes or N < 2, SettingsError for a temperature not above 0.
    """
    check_temperature(temperature)
    p, q = (F.log_softmax(found / temperature, dim=1) for found in (neighbour_lists(a, b), neighbour_lists(b, a)))
    middle = torch.logaddexp(p, q) - math.log(2)
    halves = (F.kl_div(middle, one, reduction="batchmean", log_target=True) for one in (p, q))
    return sum(halves) / 2


def list_net(
    student: List, teacher: List, *, student_temperature: float, teacher_temperature: float
) -> Float[Tensor, ""]:
    """Cross-entropy from the teacher's to the student's softmax over a list, a mean over lists (RankCSE).

    Raises DataError for wrong shapes, SettingsError for a temperature not above 0.
    """
    for temperature in (student_temperature, teacher_temperature):
        check_temperature(temperature)
    check_shapes("N M", student=student, teacher=teacher)
    return F.cross_entropy(student / student_temperature, F.softmax(teacher / teacher_temperature, dim=1))


def list_mle(student: List, teacher: List, *, temperature: float) -> Float[Tensor, ""]:
    """`-log P(teacher's order | student's scores)` under Plackett-Luce, a mean over lists (RankCSE).

    Raises DataError for wrong shapes, SettingsError for a temperature not above 0.
    """
    check_temperature(temperature)
    check_shapes("N M", student=student, teacher=teacher)
    ordered = (student / temperature).gather(1, teacher.argsort(dim=1, descending=True))
    remaining = ordered.flip(1).logcumsumexp(dim=1).flip(1)
    return (remaining - ordered).sum(dim=1).mean()


def pairs_in_order(
    scores: Float[Tensor, " P"], labels: Float[Tensor, " P"], *, temperature: float = 0.05
) -> Float[Tensor, ""]:
    """`log(1 + sum over pairs i, j with labels_i > labels_j of exp((scores_j - scores_i) / temperature))` (CoSENT; AnglE,
    with cosines and with `complex_agreement`).

    Raises DataError for scores and labels of other lengths, SettingsError for a temperature not above 0.
    """
    check_temperature(temperature)
    if scores.shape != labels.shape or scores.ndim != 1:
        raise DataError(f"a label a score: got {tuple(scores.shape)} scores and {tuple(labels.shape)} labels")
    scores = at_least_float32(scores) / temperature
    wrong = (scores[None, :] - scores[:, None])[labels[:, None] > labels[None, :]]
    return torch.logsumexp(torch.cat([wrong.new_zeros(1), wrong]), dim=0)


def complex_agreement(a: Float[Tensor, "N d"], b: Float[Tensor, "N d"]) -> Float[Tensor, " N"]:
    """|the sum of real and imaginary parts of a / b|, halves of a vector as real and imaginary parts, moduli divided out (AnglE).

    The paper calls it an angle difference; but it is 1 for equal vectors and about 0 for unrelated ones, and the released code ranks it
    as a similarity, as is done here.

    Raises DataError for wrong shapes or an odd width.
    """
    check_shapes("N d", a=a, b=b)
    if a.shape[1] % 2:
        raise DataError(f"a vector's halves are its real and imaginary parts; {a.shape[1]} dimensions have no halves")
    a, b = (torch.complex(*F.normalize(at_least_float32(x), dim=1).chunk(2, dim=1)) for x in (a, b))
    quotient = a * b.conj()  # of unit vectors: a / b with the moduli divided out
    return (quotient.real + quotient.imag).sum(dim=1).abs()
