"""Off-dropout InfoNCE, dimension contrast, Barlow Twins and triplets against loops and closed
forms."""

import math

import pytest
import torch

from cselab.errors import DataError, SettingsError
from cselab.losses import (
    barlow_twins,
    cross_correlation,
    dimension_contrast,
    info_nce,
    off_dropout_info_nce,
    triplet_info_nce,
)

N, D, TAU = 6, 4, 0.05


def cosine(x, y):
    return float(x @ y / x.norm() / y.norm())


@pytest.fixture
def rows():
    """Four sets of N sentences."""
    return torch.randn(4, N, D, dtype=torch.float64, generator=torch.Generator().manual_seed(1))


# ------------------------------------------------------------------------------------ off-dropout


@pytest.mark.parametrize(("m", "scale"), [(0.9, 1.0), (0.5, 0.9), (2.0, 1.0)])
def test_off_dropout_equals_the_sum_written_out(rows, m, scale):
    """Prevents the weight of the negatives and the scale of the positive from changing places."""
    a, b, clean, _ = rows
    expected = 0
    for i in range(N):
        positive = math.exp(scale * cosine(a[i], b[i]) / TAU)
        negatives = sum(math.exp(cosine(clean[i], clean[j]) / TAU) for j in range(N) if j != i)
        expected -= math.log(positive / (positive + m * negatives)) / N
    got = off_dropout_info_nce(
        a, b, clean, temperature=TAU, negative_weight=m, positive_scale=scale
    )
    assert got.item() == pytest.approx(expected, abs=1e-10)


def test_off_dropout_of_three_equal_passes_is_infonce(rows):
    """Prevents the positive from being among the negatives."""
    x = rows[0]
    assert off_dropout_info_nce(x, x, x, negative_weight=1.0).item() == pytest.approx(
        info_nce(x, x).item(), abs=1e-10
    )


def test_off_dropout_trains_the_clean_pass_too(rows):
    """Prevents a detached clean pass: its gradient is what spreads the sentences."""
    a, b, clean = (x.clone().requires_grad_() for x in rows[:3])
    off_dropout_info_nce(a, b, clean).backward()
    assert all(x.grad.abs().sum() > 0 for x in (a, b, clean))


# ------------------------------------------------------------------------------------- dimensions


def standardised(x, unbiased):
    columns = []
    for c in range(D):
        values = x[:, c].tolist()
        mean = sum(values) / N
        variance = sum((v - mean) ** 2 for v in values) / (N - 1 if unbiased else N)
        columns.append(
            [(v - mean) / math.sqrt(variance + (0 if unbiased else 1e-5)) for v in values]
        )
    return columns


@pytest.mark.parametrize("variant", ["paper", "released"])
def test_dimension_contrast_equals_the_sum_written_out(rows, variant):
    """Prevents the paper's deviation, temperature or mean in the released variant, and the
    reverse."""
    p, q = (standardised(x, variant == "paper") for x in rows[:2])
    tau = 5.0 if variant == "paper" else 5.0 * N
    losses = []
    for c in range(D):
        logits = [sum(u * v for u, v in zip(p[c], q[d], strict=True)) / tau for d in range(D)]
        losses.append(math.log(sum(math.exp(s) for s in logits)) - logits[c])
    expected = sum(losses) if variant == "paper" else sum(losses) / D
    assert dimension_contrast(*rows[:2], variant=variant).item() == pytest.approx(
        expected, abs=1e-10
    )


@pytest.mark.parametrize("variant", ["paper", "released"])
def test_a_dead_dimension_gives_no_nan(rows, variant):
    """Prevents a feature without variance from turning every weight into NaN."""
    a, b = (x.clone().requires_grad_() for x in rows[:2])
    with torch.no_grad():
        a[:, 0] = 1.0
    loss = dimension_contrast(a, b, variant=variant)
    loss.backward()
    assert torch.isfinite(loss)
    assert torch.isfinite(b.grad).all()


def test_barlow_twins_equals_the_sum_written_out(rows):
    """Prevents the weight from falling on the diagonal."""
    p, q = (standardised(x, unbiased=True) for x in rows[:2])
    expected = 0
    for c in range(D):
        for d in range(D):
            correlation = sum(u * v for u, v in zip(p[c], q[d], strict=True)) / (N - 1)
            expected += (1 - correlation) ** 2 if c == d else 0.012 * correlation**2
    assert barlow_twins(*rows[:2]).item() == pytest.approx(expected, abs=1e-10)
    assert barlow_twins(rows[0], rows[0], off_diagonal_weight=0.0).item() == pytest.approx(
        0, abs=1e-12
    )


@pytest.mark.parametrize(
    ("centre", "extra", "rank"), [(True, 0, 7), (False, 0, 8), (True, 5, 12), (True, 60, 40)]
)
def test_the_rank_of_the_correlation(centre, extra, rank):
    """N - 1, or N without centring, until artificial rows fill it up (SimCSE++ Table 2)."""
    a, b = torch.randn(2, 8, 40, dtype=torch.float64, generator=torch.Generator().manual_seed(2))
    generator = torch.Generator().manual_seed(3)
    c = cross_correlation(a, b, artificial_rows=extra, centre=centre, generator=generator)
    assert torch.linalg.matrix_rank(c).item() == rank


# --------------------------------------------------------------------------------------- triplets


def test_triplets_equal_the_sum_written_out(rows):
    """Prevents negatives of one's own sentence only."""
    anchor, positive, negative, _ = rows
    expected = 0
    for i in range(N):
        everything = [
            math.exp(cosine(anchor[i], x[j]) / TAU) for x in (positive, negative) for j in range(N)
        ]
        expected -= math.log(everything[i] / sum(everything)) / N
    assert triplet_info_nce(anchor, positive, negative).item() == pytest.approx(expected, abs=1e-10)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda x: off_dropout_info_nce(*x[:3, :1]), "a batch of 1 has no negatives"),
        (lambda x: dimension_contrast(*x[:2, :1]), "a batch of 1 has no negatives"),
        (lambda x: barlow_twins(*x[:2, :1]), "a batch of 1 has no negatives"),
        (lambda x: triplet_info_nce(*x[:3, :1]), "a batch of 1 has no negatives"),
        (lambda x: off_dropout_info_nce(*x[:3], negative_weight=0.0), "negative_weight .* above 0"),
        (lambda x: triplet_info_nce(*x[:3], temperature=-1.0), "temperature must be above 0"),
        (lambda x: dimension_contrast(*x[:2], temperature=0.0), "got 0.0; the papers use 5"),
    ],
)
def test_bad_input_is_refused(rows, call, message):
    """Prevents a loss of 0, or NaN, from one sentence, and a negative weight or temperature that
    trains the opposite."""
    with pytest.raises((DataError, SettingsError), match=message):
        call(rows)


def test_half_precision_stays_finite(rows):
    """Prevents exponentials that overflow bfloat16."""
    half = rows.bfloat16()
    losses = [
        off_dropout_info_nce(*half[:3]),
        dimension_contrast(*half[:2]),
        barlow_twins(*half[:2]),
        triplet_info_nce(*half[:3]),
    ]
    assert all(torch.isfinite(loss) for loss in losses)
