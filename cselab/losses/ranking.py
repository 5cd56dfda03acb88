"""Ranking losses: of a sentence's neighbours in the batch (RankCSE), and of pairs by similarity
(CoSENT, AnglE)."""

import math

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

from cselab.errors import DataError
from cselab.losses._inputs import at_least_float32, check_negatives, check_shapes, check_temperature
from cselab.losses.info_nce import cosines

Scores = Float[Tensor, "N M"]


def neighbour_lists(
    rows: Float[Tensor, "N d"], columns: Float[Tensor, "N d"]
) -> Float[Tensor, "N N-1"]:
    """Cosines of each row with the columns of the other sentences: RankCSE's S(x_i), j != i.

    https://arxiv.org/abs/2305.16726.

    Args:
        rows: Vectors of N sentences, (N, d).
        columns: Vectors of the same sentences, such as their other views, (N, d).

    Returns:
        The cosines, (N, N - 1), in the sentences' order.

    Raises:
        DataError: For wrong shapes, or N < 2.

    Examples:
        >>> import torch
        >>> from cselab.losses import neighbour_lists
        >>> neighbour_lists(torch.eye(3), torch.eye(3).roll(1, 0))
        tensor([[1., 0.],
                [0., 1.],
                [1., 0.]])
    """
    check_shapes("N d", rows=rows, columns=columns)
    check_negatives(len(rows))
    n = len(rows)
    others = ~torch.eye(n, dtype=torch.bool, device=rows.device)
    return cosines(rows, columns)[others].view(n, n - 1)


def rank_consistency(
    a: Float[Tensor, "N d"], b: Float[Tensor, "N d"], *, temperature: float = 0.05
) -> Float[Tensor, ""]:
    """Ranking consistency: Jensen-Shannon divergence of two views' softmax over the neighbours.

    RankCSE, https://arxiv.org/abs/2305.16726; a mean over sentences. (A popular re-implementation
    clamps log-probabilities from below at a small *positive* number; its divergence is a constant.)

    Args:
        a: One view of N sentences, (N, d).
        b: The other view, (N, d).
        temperature: What cosines are divided by.

    Returns:
        The loss, a scalar, from 0 (equal lists) to log 2.

    Raises:
        DataError: For wrong shapes, or N < 2.
        SettingsError: For a temperature not above 0.

    Examples:
        >>> import torch
        >>> from cselab.losses import rank_consistency
        >>> x = torch.eye(4)
        >>> rank_consistency(x, x).item()  # both views rank the neighbours alike
        0.0
        >>> f"{rank_consistency(x, x.roll(1, 0)).item():.4f}"  # no neighbour in common: log 2
        '0.6931'
    """
    check_temperature(temperature)
    p = F.log_softmax(neighbour_lists(a, b) / temperature, dim=1)
    q = F.log_softmax(neighbour_lists(b, a) / temperature, dim=1)
    middle = torch.logaddexp(p, q) - math.log(2)
    halves = (F.kl_div(middle, x, reduction="batchmean", log_target=True) for x in (p, q))
    return sum(halves) / 2


def list_net(
    student: Scores, teacher: Scores, *, student_temperature: float, teacher_temperature: float
) -> Float[Tensor, ""]:
    """ListNet: cross-entropy from the teacher's softmax over a list to the student's.

    RankCSE, https://arxiv.org/abs/2305.16726; ListNet, https://doi.org/10.1145/1273496.1273513. A
    mean over lists.

    Args:
        student: Scores of N lists of M neighbours, (N, M), as from `neighbour_lists`.
        teacher: Scores of the same lists, (N, M).
        student_temperature: What the student's scores are divided by.
        teacher_temperature: What the teacher's scores are divided by.

    Returns:
        The loss, a scalar.

    Raises:
        DataError: For wrong shapes.
        SettingsError: For a temperature not above 0.

    Examples:
        >>> import torch
        >>> from cselab.losses import list_net
        >>> even = torch.zeros(1, 4)
        >>> loss = list_net(even, even, student_temperature=0.05, teacher_temperature=0.05)
        >>> f"{loss.item():.4f}"  # entropy of four equal scores, log 4
        '1.3863'
    """
    for temperature in (student_temperature, teacher_temperature):
        check_temperature(temperature)
    check_shapes("N M", student=student, teacher=teacher)
    return F.cross_entropy(
        student / student_temperature, F.softmax(teacher / teacher_temperature, dim=1)
    )


def list_mle(student: Scores, teacher: Scores, *, temperature: float) -> Float[Tensor, ""]:
    """ListMLE: `-log P(teacher's order | student's scores)` under the Plackett-Luce model.

    RankCSE, https://arxiv.org/abs/2305.16726; ListMLE, https://doi.org/10.1145/1390156.1390306. A
    mean over lists.

    Args:
        student: Scores of N lists of M neighbours, (N, M), as from `neighbour_lists`.
        teacher: Scores of the same lists, (N, M), of which only the order counts.
        temperature: What the student's scores are divided by.

    Returns:
        The loss, a scalar.

    Raises:
        DataError: For wrong shapes.
        SettingsError: For a temperature not above 0.

    Examples:
        >>> import torch
        >>> from cselab.losses import list_mle
        >>> loss = list_mle(torch.zeros(1, 3), torch.tensor([[0.3, 0.1, 0.2]]), temperature=0.05)
        >>> f"{loss.item():.4f}"  # equal scores: each of the 3! orders is as likely, log 6
        '1.7918'
    """
    check_temperature(temperature)
    check_shapes("N M", student=student, teacher=teacher)
    ordered = (student / temperature).gather(1, teacher.argsort(dim=1, descending=True))
    remaining = ordered.flip(1).logcumsumexp(dim=1).flip(1)
    return (remaining - ordered).sum(dim=1).mean()


def cosent(
    scores: Float[Tensor, " P"], labels: Float[Tensor, " P"], *, temperature: float = 0.05
) -> Float[Tensor, ""]:
    """CoSENT: a soft count of the pairs whose scores are in the wrong order.

    `log(1 + sum of exp((scores_j - scores_i) / temperature))`, the sum over i, j with
    labels_i > labels_j (https://kexue.fm/archives/8847). AnglE uses it with cosines and with
    `complex_agreement` (https://arxiv.org/abs/2309.12871).

    Args:
        scores: Similarities of P pairs of sentences, (P,).
        labels: Their labels, (P,), higher for more similar; only their order counts.
        temperature: What differences of scores are divided by.

    Returns:
        The loss, a scalar.

    Raises:
        DataError: Unless scores and labels have one length.
        SettingsError: For a temperature not above 0.

    Examples:
        >>> import torch
        >>> from cselab.losses import cosent
        >>> loss = cosent(torch.zeros(2), torch.tensor([1.0, 0.0]))
        >>> f"{loss.item():.4f}"  # one pair, equal scores: log 2
        '0.6931'
    """
    check_temperature(temperature)
    if scores.shape != labels.shape or scores.ndim != 1:
        raise DataError(
            f"expected one label per score, got {tuple(scores.shape)} scores and "
            f"{tuple(labels.shape)} labels"
        )
    scores = at_least_float32(scores) / temperature
    wrong = (scores[None, :] - scores[:, None])[labels[:, None] > labels[None, :]]
    return torch.logsumexp(torch.cat([wrong.new_zeros(1), wrong]), dim=0)


def complex_agreement(a: Float[Tensor, "N d"], b: Float[Tensor, "N d"]) -> Float[Tensor, " N"]:
    """AnglE's similarity of complex vectors: |sum of the real and imaginary parts of a / b|.

    AnglE, https://arxiv.org/abs/2309.12871. The first half of a vector is its real part, the second
    its imaginary part; the moduli are divided out. The paper calls it an angle difference; but it
    is 1 for equal vectors and about 0 for unrelated ones, and the released code ranks it as a
    similarity, as is done here.

    Args:
        a: N vectors, (N, d).
        b: N vectors, (N, d).

    Returns:
        The similarity of each row of `a` to that of `b`, (N,).

    Raises:
        DataError: For wrong shapes, or an odd d.

    Examples:
        >>> import torch
        >>> from cselab.losses import complex_agreement
        >>> x = torch.tensor([[0.6, 0.8]])
        >>> f"{complex_agreement(x, x).item():.3f}"  # equal vectors
        '1.000'
    """
    check_shapes("N d", a=a, b=b)
    if a.shape[1] % 2:
        raise DataError(
            f"a vector's halves are its real and imaginary parts; {a.shape[1]} dimensions have no "
            "halves"
        )
    a, b = (torch.complex(*F.normalize(at_least_float32(x), dim=1).chunk(2, dim=1)) for x in (a, b))
    quotient = a * b.conj()  # of unit vectors: a / b with the moduli divided out
    return (quotient.real + quotient.imag).sum(dim=1).abs()
