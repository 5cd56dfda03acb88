"""The modulus constraint against loops, its closed surface, and the places where its gradient could break."""

import inspect
import math

import pytest
import torch
from cselab.errors import DataError
from cselab.losses import ictm, modulus_ratio, modulus_surface

N, D = 6, 5


@pytest.fixture
def towers():
    """cls_i, cls_ii, pooled_i, pooled_ii: (2, N, D) each."""
    return torch.randn(4, 2, N, D, dtype=torch.float64, generator=torch.Generator().manual_seed(1))


def _norm(x) -> float:
    return math.sqrt(sum(value * value for value in x))


def _ratio(p, q) -> float:
    p, q = p.tolist(), q.tolist()
    return _norm([a - b for a, b in zip(p, q, strict=True)]) / (_norm(p) + _norm(q))


def _cosine(x, y) -> float:
    x, y = x.tolist(), y.tolist()
    return sum(a * b for a, b in zip(x, y, strict=True)) / _norm(x) / _norm(y)


def _neg_log(s: float) -> float:
    return -math.log(s) if s >= 0.05 else -math.log(0.05) + (0.05 - s) / 0.05


def loop_paper(c1, c2, p1, p2) -> float:
    rows = range(c1.shape[1])
    return sum(_neg_log(_cosine(c1[0, n], c2[0, n])) * (_ratio(p1[0, n], p2[1, n]) + _ratio(p2[0, n], p1[1, n])) for n in rows) / len(rows)


def loop_released(c1, c2, p1, p2) -> float:
    """As the released code has it: one tower pair at a time, each a mean over sentences, added."""
    total = 0.0
    for ca, cb, pa, pb in ((c1, c2, p1, p2), (c2, c1, p2, p1)):
        terms = []
        for n in range(ca.shape[1]):
            s = _cosine(ca[0, n], cb[1, n])
            terms.append(-math.log(1e-4 if s < 0 else s) * _ratio(pa[0, n], pb[1, n]) / 2)
        total += sum(terms) / len(terms)
    return total


def test_ictm_equals_the_loop(towers):
    assert ictm(*towers).item() == pytest.approx(loop_paper(*towers), abs=1e-10)
    assert ictm(*towers, variant="released").item() == pytest.approx(loop_released(*towers), abs=1e-10)


def test_ratio_equals_the_loop_and_the_surface(towers):
    p, q = towers[2]
    expected = [_ratio(a, b) for a, b in zip(p, q, strict=True)]
    torch.testing.assert_close(modulus_ratio(p, q), torch.tensor(expected, dtype=torch.float64), rtol=0, atol=1e-12)
    k = q.norm(dim=-1) / p.norm(dim=-1)
    t = torch.cosine_similarity(p, q)
    torch.testing.assert_close(modulus_ratio(p, q), modulus_surface(k, t))


def test_surface_has_its_minimum_at_equal_vectors():
    """Closed forms of the paper's surface: 0 at (1, 1), |1 - k| / (1 + k) along t = 1, 1 along t = -1, 1/sqrt(2) at (1, 0)."""
    k = torch.linspace(0.1, 4, 40, dtype=torch.float64)
    one = torch.ones_like(k)
    torch.testing.assert_close(modulus_surface(k, one), (1 - k).abs() / (1 + k))
    torch.testing.assert_close(modulus_surface(k, -one), one)
    assert modulus_surface(one[:1], 0 * one[:1]).item() == pytest.approx(1 / math.sqrt(2))
    grid = modulus_surface(k[:, None], torch.linspace(-1, 1, 41, dtype=torch.float64)[None, :])
    assert grid.min() >= 0


def test_ratio_is_symmetric_scale_free_and_bounded(towers):
    p, q = towers[2]
    ratio = modulus_ratio(p, q)
    torch.testing.assert_close(ratio, modulus_ratio(q, p))
    torch.testing.assert_close(ratio, modulus_ratio(3 * p, 3 * q))
    assert ((ratio >= 0) & (ratio <= 1)).all()
    torch.testing.assert_close(modulus_ratio(p, -p), torch.ones(N, dtype=torch.float64))


@pytest.mark.parametrize("where", ["equal", "both zero", "one zero"])
def test_gradient_is_finite_where_the_norm_has_none(towers, where):
    """Prevents one collapsed or identical pair from turning every weight into NaN."""
    p = towers[2, 0].clone()
    q = {"equal": p.clone(), "both zero": torch.zeros_like(p), "one zero": torch.zeros_like(p)}[where]
    if where == "both zero":
        p = torch.zeros_like(p)
    p.requires_grad_(), q.requires_grad_()
    ratio = modulus_ratio(p, q)
    ratio.sum().backward()
    assert ratio.isfinite().all()
    assert p.grad.isfinite().all()
    assert q.grad.isfinite().all()
    assert ratio[0].item() == {"equal": 0, "both zero": 0, "one zero": 1}[where]


def _with_cosine(s, towers):
    """[CLS] of tower II at cosine s to tower I's, in both views; the pooled outputs stay as they are."""
    cls_i = torch.zeros(2, N, D, dtype=torch.float64)
    cls_i[..., 0] = 1
    s = s.reshape(1, 1)
    cls_ii = torch.cat([s, (1 - s**2).sqrt(), torch.zeros(1, D - 2, dtype=torch.float64)], dim=1).expand(2, N, D)
    return cls_i, cls_ii, towers[2], towers[3]


@pytest.mark.parametrize("s", [-0.9, 0.0, 0.01, 0.049, 0.3, 0.99])
def test_loss_falls_with_the_cosine_everywhere(towers, s):
    """The released code's constant under 0 cuts the gradient where it is most needed; ours must pull there, finitely."""
    cosine = torch.tensor(s, dtype=torch.float64, requires_grad=True)
    ictm(*_with_cosine(cosine, towers)).backward()
    assert cosine.grad.isfinite()
    assert cosine.grad < 0


def test_the_released_variant_has_no_gradient_under_zero(towers):
    cosine = torch.tensor(-0.5, dtype=torch.float64, requires_grad=True)
    ictm(*_with_cosine(cosine, towers), variant="released").backward()
    assert cosine.grad == 0


def test_the_tangent_meets_the_logarithm(towers):
    """Value and slope agree at the joint: prevents a step that an optimiser would sit on."""
    below, above = (ictm(*_with_cosine(torch.tensor(0.05 + d, dtype=torch.float64), towers)) for d in (-1e-9, 1e-9))
    assert below.item() == pytest.approx(above.item(), rel=1e-6)


def test_gradients_are_right(towers):
    towers = [tower[:, :3].clone().requires_grad_() for tower in towers]
    towers[1] = (towers[0].detach() + 0.3 * towers[1].detach()).requires_grad_()
    assert torch.autograd.gradcheck(lambda *inputs: ictm(*inputs), towers)


def test_bfloat16_is_finite(towers):
    towers = [tower.bfloat16().requires_grad_() for tower in towers]
    loss = ictm(*towers)
    loss.backward()
    assert loss.dtype == torch.float32
    assert all(tower.grad.isfinite().all() for tower in towers)


def test_identical_towers_cost_nothing(towers):
    same = towers[0, :1].expand(2, N, D)
    assert ictm(same, same, same, same).item() == pytest.approx(0, abs=1e-12)


def test_unequal_shapes_are_one_clear_line(towers):
    with pytest.raises(DataError, match=r"one shape, got cls_i \(2, 6, 5\), cls_ii \(2, 5, 5\)"):
        inspect.unwrap(ictm)(towers[0], towers[1][:, :5], towers[2], towers[3])  # without the tests' own type checker
