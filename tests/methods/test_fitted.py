"""Maps fitted to a text: whitening gives it identity covariance, the flow makes it Gaussian."""

import pytest
import torch

from cselab.methods.baselines.fitted import Flowed, Whitened

TEXT = [str(i) for i in range(400)]


@pytest.fixture(scope="module")
def encode():
    """Vectors of very different variances around a common mean, by line."""
    torch.manual_seed(0)
    mixing = torch.randn(8, 8) * torch.tensor([5.0, 3, 2, 1, 1, 0.5, 0.1, 0.01])
    vectors = torch.randn(400, 8) @ mixing.T + 7
    return lambda sentences: vectors[[int(sentence) for sentence in sentences]]


def test_the_covariance_becomes_the_identity(encode):
    """Prevents a map that is transposed or not centred."""
    white = Whitened(encode, TEXT).encode(TEXT).double()
    torch.testing.assert_close(
        white.mean(0), torch.zeros(8, dtype=torch.float64), atol=1e-4, rtol=0
    )
    torch.testing.assert_close(
        torch.cov(white.T), torch.eye(8, dtype=torch.float64), atol=1e-3, rtol=0
    )


@pytest.fixture(scope="module")
def flowed(encode):
    return Flowed(encode, TEXT)


def test_the_flows_determinant_is_that_of_its_map(flowed):
    """Against autograd's Jacobian: a wrong determinant makes a likelihood that grows by shrinking
    everything."""
    x = torch.randn(3, 8)
    _, change = flowed.transform(x)
    for row, found in zip(x, change, strict=True):
        jacobian = torch.autograd.functional.jacobian(
            lambda r: flowed.transform(r[None])[0][0], row
        )
        torch.testing.assert_close(
            torch.linalg.slogdet(jacobian).logabsdet, found.detach(), atol=1e-4, rtol=1e-4
        )


def test_the_flow_makes_the_text_more_gaussian_and_is_the_same_each_time(encode, flowed):
    """Prevents a flow that does not train, or that another process fits differently."""
    assert sum(flowed.losses[-50:]) < sum(flowed.losses[:50])
    z = flowed.encode(TEXT)
    assert z.mean(0).abs().max() < 0.3
    before, after = (
        (torch.corrcoef(rows.T) - torch.eye(8)).abs().mean() for rows in (encode(TEXT), z)
    )
    assert after < before / 2
    torch.testing.assert_close(Flowed(encode, TEXT).encode(TEXT[:3]), z[:3])
