"""Losses of the baselines, against loops over their formulas and for the property each is there
for."""

import itertools
import math

import pytest
import torch

from cselab.errors import DataError, SettingsError
from cselab.losses import (
    arc_con,
    group_whiten,
    info_nce,
    neighbour_lists,
    rank_consistency,
)
from cselab.methods.baselines.angle import complex_agreement, cosent
from cselab.methods.baselines.arccse import distance_hinge
from cselab.methods.baselines.rankcse import list_mle, list_net
from cselab.methods.baselines.sncse import bidirectional_margin

N, D = 5, 8


@pytest.fixture
def views():
    torch.manual_seed(0)
    a = torch.randn(N, D, dtype=torch.float64)
    return a, a + 0.5 * torch.randn(N, D, dtype=torch.float64)


def cos(x, y):
    return (x @ y / (x.norm() * y.norm())).item()


def test_arc_con_enlarges_the_positives_angle_alone(views):
    """Against the formula; prevents a margin on negatives, and degrees that are taken for
    radians."""
    a, b = views
    total = 0.0
    for i in range(N):
        logits = [cos(a[i], b[j]) / 0.05 for j in range(N)]
        logits[i] = math.cos(math.acos(cos(a[i], b[i])) + math.radians(10)) / 0.05
        total += math.log(sum(map(math.exp, logits))) - logits[i]
    assert arc_con(a, b, margin=10.0, temperature=0.05).item() == pytest.approx(total / N)
    torch.testing.assert_close(arc_con(a, b, margin=0.0), info_nce(a, b))
    ids = torch.tensor([0, 1, 0, 2, 3])
    torch.testing.assert_close(arc_con(a, b, margin=0.0, ids=ids), info_nce(a, b, ids=ids))
    assert arc_con(a, b, margin=20.0) > arc_con(a, b, margin=10.0)


def test_arc_con_has_a_gradient_where_the_views_are_one():
    """Prevents the infinite slope of the sine at angle 0: without dropout both views are the same
    vector."""
    a = torch.randn(4, 6, requires_grad=True)
    arc_con(a, a * 1.0).backward()
    assert a.grad.isfinite().all()


def test_the_distance_hinge_is_zero_in_the_right_order(views):
    """By hand; prevents the lightly and the heavily masked from changing places."""
    a, b = views
    far = -a
    assert distance_hinge(a, a, far).item() == 0
    expected = sum(max(0.0, cos(a[i], b[i]) - cos(a[i], far[i]) + 0.1) for i in range(N)) / N
    assert distance_hinge(a, far, b, margin=0.1).item() == pytest.approx(expected)


@pytest.mark.parametrize(
    ("difference", "expected"),
    [(0.0, 0.1), (-0.1, 0.0), (-0.2, 0.0), (-0.3, 0.0), (-0.5, 0.2), (0.4, 0.5)],
)
def test_a_soft_negative_is_held_in_its_band(difference, expected):
    """The loss by hand; prevents a negated sentence that is pushed away without end."""
    anchor = torch.tensor([[1.0, 0.0]], dtype=torch.float64)
    angle = math.acos(0.5)
    positive = torch.tensor([[math.cos(angle), math.sin(angle)]], dtype=torch.float64)
    other = math.acos(0.5 + difference)
    negative = torch.tensor([[math.cos(other), math.sin(other)]], dtype=torch.float64)
    assert bidirectional_margin(anchor, positive, negative).item() == pytest.approx(
        expected, abs=1e-9
    )


def test_rank_consistency_is_the_jensen_shannon_divergence(views):
    """Against the definition over lists; 0 for equal lists and positive otherwise, so its
    log-probabilities are not clamped away."""
    a, b = views

    def softmax(values):
        top = [math.exp(v / 0.05) for v in values]
        return [t / sum(top) for t in top]

    total = 0.0
    for i in range(N):
        p = softmax([cos(a[i], b[j]) for j in range(N) if j != i])
        q = softmax([cos(b[i], a[j]) for j in range(N) if j != i])
        m = [(x + y) / 2 for x, y in zip(p, q, strict=True)]
        total += (
            sum(x * math.log(x / z) + y * math.log(y / z) for x, y, z in zip(p, q, m, strict=True))
            / 2
        )
    assert rank_consistency(a, b).item() == pytest.approx(total / N)
    assert rank_consistency(a, b).item() > 1e-3
    assert rank_consistency(a, a).item() == pytest.approx(0, abs=1e-12)
    assert rank_consistency(a, b).item() < math.log(2)


def test_list_net_is_least_at_the_teachers_distribution():
    """Against the definition; prevents the two temperatures from changing places."""
    torch.manual_seed(0)
    student, teacher = torch.randn(2, 3, 6, dtype=torch.float64)
    p = (teacher / 0.05).softmax(1)
    expected = -(p * (student / 0.025).log_softmax(1)).sum(1).mean()
    found = list_net(student, teacher, student_temperature=0.025, teacher_temperature=0.05)
    torch.testing.assert_close(found, expected)
    same = list_net(teacher, teacher, student_temperature=0.05, teacher_temperature=0.05)
    assert same <= list_net(student, teacher, student_temperature=0.05, teacher_temperature=0.05)


def test_list_mle_is_a_likelihood_over_orders():
    """Over all orders of a list the probabilities sum to 1; prevents an order that is read
    backwards."""
    torch.manual_seed(0)
    student = torch.randn(1, 4, dtype=torch.float64)
    orders = [
        torch.tensor([order], dtype=torch.float64) for order in itertools.permutations(range(4))
    ]
    chances = [math.exp(-list_mle(student, teacher, temperature=1.0).item()) for teacher in orders]
    assert sum(chances) == pytest.approx(1)
    assert max(chances) == pytest.approx(
        math.exp(-list_mle(student, student, temperature=1.0).item())
    )


def test_cosent_counts_only_pairs_of_different_labels():
    """By hand; prevents pairs of equal labels that push each other, and an order the wrong way
    round."""
    scores = torch.tensor([0.9, 0.1, 0.5], dtype=torch.float64)
    labels = torch.tensor([1.0, 0.0, 1.0])
    expected = math.log(1 + math.exp((0.1 - 0.9) / 0.5) + math.exp((0.1 - 0.5) / 0.5))
    assert cosent(scores, labels, temperature=0.5).item() == pytest.approx(expected)
    assert cosent(scores, torch.ones(3)).item() == 0
    assert cosent(-scores, labels) > cosent(scores, labels)


def test_agreement_is_of_the_complex_quotient(views):
    """Against complex division; equal vectors give d/2 parts that add to 1, and scale does not
    matter."""
    a, b = views
    half = D // 2
    for i in range(N):
        z = [complex(a[i, k], a[i, half + k]) for k in range(half)]
        w = [complex(b[i, k], b[i, half + k]) for k in range(half)]
        ratio = sum(abs(x) ** 2 for x in w) / (a[i].norm() * b[i].norm()).item()
        quotients = [x * y.conjugate() for x, y in zip(z, w, strict=True)]
        expected = (
            abs(sum(q.real + q.imag for q in quotients)) / sum(abs(x) ** 2 for x in w) * ratio
        )
        assert complex_agreement(a, b)[i].item() == pytest.approx(expected)
    torch.testing.assert_close(complex_agreement(a, a), torch.ones(N, dtype=torch.float64))
    torch.testing.assert_close(complex_agreement(3 * a, b), complex_agreement(a, b))
    with pytest.raises(DataError, match="7 dimensions have no halves"):
        complex_agreement(a[:, :7], b[:, :7])


def test_a_whitened_group_has_the_identity_as_covariance():
    """And the features come back to their places: prevents a permutation that is undone by itself
    applied twice."""
    torch.manual_seed(0)
    rows = torch.randn(40, 12, dtype=torch.float64) @ torch.randn(12, 12, dtype=torch.float64)
    order = torch.randperm(12)
    white = group_whiten(rows, order, groups=3, shrinkage=0.0)
    for group in order.view(3, 4):
        covariance = torch.cov(white[:, group].T)
        torch.testing.assert_close(covariance, torch.eye(4, dtype=torch.float64))
    nothing = group_whiten(white, order, groups=3, shrinkage=0.0)
    torch.testing.assert_close(nothing, white)  # what is white stays, feature by feature


def test_further_negatives_are_candidates_of_every_row(views):
    """Against one longer batch of candidates (ESimCSE's queue)."""
    a, b = views
    more = torch.randn(3, D, dtype=torch.float64)
    logits = torch.tensor([[cos(x, y) / 0.05 for y in (*b, *more)] for x in a], dtype=torch.float64)
    expected = torch.nn.functional.cross_entropy(logits, torch.arange(N))
    torch.testing.assert_close(info_nce(a, b, more_negatives=more), expected)
    torch.testing.assert_close(info_nce(a, b, more_negatives=more[:0]), info_nce(a, b))


def test_neighbours_leave_the_sentence_out(views):
    """Prevents a list in which each sentence is its own nearest neighbour."""
    a, b = views
    lists = neighbour_lists(a, b)
    assert lists.shape == (N, N - 1)
    assert lists[2, 2].item() == pytest.approx(cos(a[2], b[3]))


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda a, b: arc_con(a, b, margin=100.0), SettingsError),
        (lambda a, b: arc_con(a[:1], b[:1]), DataError),
        (lambda a, b: bidirectional_margin(a, b, b, least=0.5, most=0.1), SettingsError),
        (lambda a, b: rank_consistency(a[:1], b[:1]), DataError),
        (lambda a, b: rank_consistency(a, b, temperature=0.0), SettingsError),
        (lambda a, b: list_mle(a, b, temperature=-1.0), SettingsError),
        (lambda a, b: group_whiten(a, torch.arange(D), groups=5), SettingsError),
        (lambda a, b: group_whiten(a, torch.arange(D), groups=0), SettingsError),
        (lambda a, b: group_whiten(a[:4], torch.arange(D), groups=2), DataError),
    ],
)
def test_bad_input_is_refused(views, call, error):
    """Prevents NaN, or a number without meaning, from input that makes no sense."""
    with pytest.raises(error):
        call(*views)
