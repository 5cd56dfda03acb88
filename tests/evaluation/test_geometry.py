"""Alignment and uniformity in closed form."""

import math

import pytest
import torch

from cselab.errors import DataError
from cselab.evaluation import alignment, uniformity


def test_alignment_in_closed_form():
    """Prevents a distance without its square."""
    x = torch.tensor([[1.0, 0.0], [0.0, 2.0]])
    assert alignment(x, 7 * x).item() == pytest.approx(0, abs=1e-12)
    assert alignment(x, -x).item() == pytest.approx(4)
    assert alignment(x, x.flip(0)).item() == pytest.approx(2)  # orthogonal


@pytest.mark.parametrize("t", [2.0, 3.0])
def test_uniformity_in_closed_form(t):
    """Squared distances: 2 of basis vectors, 4 of opposite ones; the diagonal is left out."""
    assert uniformity(torch.eye(5), t).item() == pytest.approx(-2 * t)
    assert uniformity(torch.tensor([[1.0, 0.0], [-3.0, 0.0]]), t).item() == pytest.approx(-4 * t)
    square = torch.tensor([[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0], [0.0, -1.0]])
    expected = math.log((4 * math.exp(-2 * t) + 2 * math.exp(-4 * t)) / 6)
    assert uniformity(square, t).item() == pytest.approx(expected, rel=1e-5)
    assert uniformity(torch.ones(6, 3), t).item() == pytest.approx(0, abs=1e-9)  # collapsed


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
    with pytest.raises(DataError, match="pairs, got none; lower the rating"):
        alignment(torch.empty(0, 3), torch.empty(0, 3))
    with pytest.raises(DataError, match="got 1; give at least 2"):
        uniformity(torch.ones(1, 3))
