"""InfoNCE and ICNCE against double loops, closed forms and properties."""

import math

import pytest
import torch
from cselab.errors import DataError, SettingsError
from cselab.losses import icnce, info_nce

N, D, TAU = 7, 5, 0.05


def _cosine(x, y) -> float:
    x, y = x.tolist(), y.tolist()
    dot = sum(p * q for p, q in zip(x, y, strict=True))
    return dot / math.sqrt(sum(p * p for p in x)) / math.sqrt(sum(q * q for q in y))


def _row_loss(anchor, candidates, positive, tau) -> float:
    logits = [_cosine(anchor, candidate) / tau for candidate in candidates]
    top = max(logits)
    return top + math.log(sum(math.exp(logit - top) for logit in logits)) - _cosine(anchor, positive) / tau


def loop_cross(a, b, tau):
    return sum(_row_loss(a[i], list(b), b[i], tau) for i in range(len(a))) / len(a)


def loop_all(a, b, tau):
    n, rows = len(a), [*a, *b]
    return sum(
        _row_loss(rows[i], [rows[j] for j in range(2 * n) if j != i], rows[(i + n) % (2 * n)], tau) for i in range(2 * n)
    ) / (2 * n)


def loop_icnce_released(i, ii, tau):
    n = i.shape[1]
    rows, columns = [*i[0], *i[1]], [*ii[0], *ii[1]]
    return sum(
        _row_loss(rows[r], [columns[c] for c in range(2 * n) if c != r], columns[(r + n) % (2 * n)], tau)
        for r in range(2 * n)
    ) / (2 * n)


@pytest.fixture
def views():
    return torch.randn(2, 2, N, D, dtype=torch.float64, generator=torch.Generator().manual_seed(0))


@pytest.mark.parametrize(("layout", "loop"), [("cross", loop_cross), ("all", loop_all)])
@pytest.mark.parametrize("tau", [0.05, 1.0])
def test_info_nce_equals_the_double_loop(views, layout, loop, tau):
    a, b = views[0]
    assert info_nce(a, b, temperature=tau, layout=layout).item() == pytest.approx(loop(a, b, tau), abs=1e-10)


def test_icnce_equals_the_double_loop(views):
    i, ii = views
    paper = (loop_cross(i[0], ii[0], TAU) + loop_cross(i[1], ii[1], TAU)) / 2
    assert icnce(i, ii).item() == pytest.approx(paper, abs=1e-10)
    assert icnce(i, ii, variant="released").item() == pytest.approx(loop_icnce_released(i, ii, TAU), abs=1e-10)


def test_closed_forms():
    """Orthonormal views: log(1 + (N-1) e^(-1/tau)). A collapsed encoder: log of the number of candidates."""
    eye = torch.eye(N, dtype=torch.float64)
    assert info_nce(eye, eye).item() == pytest.approx(math.log1p((N - 1) * math.exp(-1 / TAU)), abs=1e-12)
    assert info_nce(eye, eye, layout="all").item() == pytest.approx(math.log1p((2 * N - 2) * math.exp(-1 / TAU)), abs=1e-12)
    same = torch.ones(N, D, dtype=torch.float64)
    assert info_nce(same, same).item() == pytest.approx(math.log(N))
    assert info_nce(same, same, layout="all").item() == pytest.approx(math.log(2 * N - 1))
    twice = torch.stack([eye, eye])
    assert icnce(twice, twice).item() == pytest.approx(info_nce(eye, eye).item())


def test_temperature_only_scales_the_cosines(views):
    """With unit rows and tau = 1 the loss is that of scaled rows' dot products: prevents a lost or doubled division."""
    a, b = (view / view.norm(dim=-1, keepdim=True) for view in views[0])
    logits = a @ b.T / 0.2
    expected = torch.nn.functional.cross_entropy(logits, torch.arange(N))
    torch.testing.assert_close(info_nce(a, b, temperature=0.2), expected)


def test_invariances(views):
    """Lengths and the order of sentences do not matter; `all` is symmetric in the views, `cross` is not."""
    a, b = views[0]
    scale = torch.rand(N, 1, dtype=torch.float64) + 0.5
    order = torch.randperm(N)
    for layout in ("cross", "all"):
        loss = info_nce(a, b, layout=layout)
        torch.testing.assert_close(info_nce(a * scale, b / scale, layout=layout), loss)
        torch.testing.assert_close(info_nce(a[order], b[order], layout=layout), loss)
    torch.testing.assert_close(info_nce(a, b, layout="all"), info_nce(b, a, layout="all"))
    assert not torch.isclose(info_nce(a, b), info_nce(b, a))


def test_released_icnce_ignores_the_same_view_of_the_same_sentence():
    """The ledger row: in the released code the diagonal is neither positive nor negative; in the paper it is the positive.

    All rows of tower I are orthonormal, and tower II has the positives right, so the gradient along a row's own
    counterpart is exactly the diagonal's part in the loss.
    """
    i = torch.eye(6, 8, dtype=torch.float64).reshape(2, 3, 8)
    ii = i.flip(0).clone().requires_grad_()
    icnce(i, ii, variant="released").backward()
    torch.testing.assert_close((ii.grad * i).sum(-1), torch.zeros(2, 3, dtype=torch.float64))
    ii.grad = None
    icnce(i, ii).backward()
    assert ((ii.grad * i).sum(-1) < 0).all()


@pytest.mark.parametrize("layout", ["cross", "all"])
def test_gradients_are_right(views, layout):
    a, b = (view.clone().requires_grad_() for view in views[0])
    assert torch.autograd.gradcheck(lambda x, y: info_nce(x, y, temperature=0.5, layout=layout), (a, b))


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_half_precision_is_finite_and_close(views, dtype):
    """Prevents logits of 20 from being rounded to whole steps in bfloat16, or a loss that is NaN under autocast."""
    a, b = (view.to(dtype).requires_grad_() for view in views[0])
    with torch.autocast("cpu", dtype=torch.bfloat16):
        loss = info_nce(a, b)
    loss.backward()
    assert a.grad.isfinite().all()
    assert loss.dtype == torch.float32
    assert loss.item() == pytest.approx(info_nce(a.double(), b.double()).item(), abs=1e-4)


def test_bad_input_is_one_clear_line(views):
    a, b = views[0]
    with pytest.raises(DataError, match="a batch of 1 has no negatives; give at least 2 sentences"):
        info_nce(a[:1], b[:1])
    with pytest.raises(DataError, match="a batch of 1 has no negatives"):
        icnce(views[0][:, :1], views[1][:, :1])
    with pytest.raises(SettingsError, match="temperature must be above 0, got -0.05"):
        info_nce(a, b, temperature=-0.05)
    with pytest.raises(SettingsError, match="temperature must be above 0, got nan"):
        info_nce(a, b, temperature=math.nan)
