"""Alignment and uniformity in closed form."""

import math

import pytest
import torch
import torch.nn.functional as F

from cselab.errors import DataError
from cselab.evaluation import alignment, anisotropy, effective_rank, uniformity


def test_alignment_in_closed_form():
    """Prevents a distance without its square, and vectors of different lengths that count as
    apart."""
    x = torch.tensor([[1.0, 0.0], [0.0, 2.0]])
    assert alignment(x, 7 * x).item() == pytest.approx(0, abs=1e-12)
    assert alignment(x, -x).item() == pytest.approx(4)
    assert alignment(x, x.flip(0)).item() == pytest.approx(2)  # orthogonal


@pytest.mark.parametrize("t", [2.0, 3.0])
def test_uniformity_in_closed_form(t):
    """Squared distances are 2 between basis vectors and 4 between opposite ones; the diagonal is
    left out."""
    assert uniformity(torch.eye(5), t).item() == pytest.approx(-2 * t)
    assert uniformity(torch.tensor([[1.0, 0.0], [-3.0, 0.0]]), t).item() == pytest.approx(-4 * t)
    square = torch.tensor([[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0], [0.0, -1.0]])
    expected = math.log((4 * math.exp(-2 * t) + 2 * math.exp(-4 * t)) / 6)
    assert uniformity(square, t).item() == pytest.approx(expected, rel=1e-5)


def test_collapsed_embeddings_have_uniformity_zero():
    """Closed form; prevents the logarithm of 0."""
    assert uniformity(torch.ones(6, 3)).item() == pytest.approx(0, abs=1e-9)


def test_lengths_do_not_matter_and_inputs_are_not_changed():
    """Prevents reporting numbers of unnormalised embeddings, the usual mistake."""
    x, y = torch.randn(20, 8, generator=torch.Generator().manual_seed(0)).split(10)
    before = x.clone()
    scale = torch.linspace(0.1, 30, 10)[:, None]
    torch.testing.assert_close(alignment(scale * x, y), alignment(x, y))
    torch.testing.assert_close(uniformity(scale * x), uniformity(x))
    torch.testing.assert_close(x, before)


def test_half_precision_is_computed_in_float32():
    """Prevents squared distances that are rounded to 8 bits."""
    x = torch.randn(50, 16, generator=torch.Generator().manual_seed(0)).bfloat16()
    torch.testing.assert_close(uniformity(x), uniformity(x.float()))
    assert alignment(x, x).dtype == torch.float32


def test_too_few_rows_are_one_line():
    """Prevents a silent NaN when no pair is rated above 4."""
    with pytest.raises(
        DataError, match="alignment is a mean over pairs of the same meaning, got none"
    ):
        alignment(torch.empty(0, 3), torch.empty(0, 3))
    with pytest.raises(
        DataError, match="uniformity compares pairs of sentences, got 1; give at least 2"
    ):
        uniformity(torch.ones(1, 3))


def test_anisotropy_is_the_mean_cosine_of_different_rows():
    """Prevents a row's cosine of 1 with itself from being counted."""
    x = torch.randn(40, 7) + 1
    cosines = F.normalize(x, dim=1) @ F.normalize(x, dim=1).T
    expected = cosines[~torch.eye(40, dtype=torch.bool)].mean()
    torch.testing.assert_close(anisotropy(x), expected, atol=1e-5, rtol=0)
    assert anisotropy(torch.ones(5, 3)).item() == pytest.approx(1)


def test_effective_rank_counts_equal_directions():
    """k orthogonal directions of one strength have rank k; scale does not matter."""
    for k in (1, 3, 8):
        rows = (
            torch.eye(8)[:k].repeat(4, 1)
            * torch.tensor([1.0, -1.0, 1.0, -1.0]).repeat_interleave(k)[:, None]
        )
        assert effective_rank(rows).item() == pytest.approx(k, rel=1e-5)
        assert effective_rank(7 * rows).item() == pytest.approx(k, rel=1e-5)
    with pytest.raises(DataError, match="all the same"):
        effective_rank(torch.ones(6, 4))
