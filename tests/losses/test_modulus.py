"""The modulus constraint against loops, its closed surface, and the places where its gradient could
break."""

import inspect
import math

import pytest
import torch

from cselab.errors import DataError, SettingsError
from cselab.losses import ictm, modulus_ratio, modulus_surface

N, D = 6, 5
VARIANTS = ["paper", "released"]


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
    total = 0.0
    for n in range(c1.shape[1]):
        ratios = _ratio(p1[0, n], p2[1, n]) + _ratio(p2[0, n], p1[1, n])
        total += _neg_log(_cosine(c1[0, n], c2[0, n])) * ratios
    return total / c1.shape[1]


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


@pytest.mark.parametrize(
    ("variant", "loop"), zip(VARIANTS, (loop_paper, loop_released), strict=True)
)
def test_ictm_equals_the_loop(towers, variant, loop):
    """On cosines of both signs, so that the logarithm and what stands in for it are both there."""
    cosines = torch.cosine_similarity(
        towers[0, 0], towers[1, 0 if variant == "paper" else 1], dim=-1
    )
    assert cosines.min() < 0 < 0.05 < cosines.max()
    assert ictm(*towers, variant=variant).item() == pytest.approx(loop(*towers), abs=1e-10)


def test_ratio_equals_the_loop(towers):
    """Prevents a norm over the wrong axis."""
    p, q = towers[2]
    expected = [_ratio(a, b) for a, b in zip(p, q, strict=True)]
    assert modulus_ratio(p, q).tolist() == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("k", [0.0, 0.2, 1.0, 3.0])
@pytest.mark.parametrize("t", [-1.0, -0.3, 0.0, 0.8, 1.0])
def test_surface_is_the_ratio_of_vectors_with_that_norm_and_angle(k, t):
    """p of any length, q k times as long and at cosine t to it: the paper's l_TN as a function of k
    and t."""
    basis = torch.linalg.qr(
        torch.randn(D, D, dtype=torch.float64, generator=torch.Generator().manual_seed(2))
    )[0]
    p = 7.5 * basis[:1]
    q = 7.5 * k * (t * basis[:1] + math.sqrt(1 - t * t) * basis[1:2])
    expected = math.sqrt(max(0, 1 + k * k - 2 * k * t)) / (1 + k)
    assert modulus_surface(*torch.tensor([[k], [t]], dtype=torch.float64)).item() == pytest.approx(
        expected, abs=1e-12
    )
    assert modulus_ratio(p, q).item() == pytest.approx(expected, abs=1e-12)


def test_surface_broadcasts_and_has_its_minimum_at_equal_vectors():
    """Prevents transposed axes of the drawn surface."""
    k = torch.linspace(0.1, 4, 40, dtype=torch.float64)  # 1.0 is the tenth
    t = torch.linspace(-1, 1, 41, dtype=torch.float64)
    grid = modulus_surface(k[:, None], t[None, :])
    assert grid.shape == (40, 41)
    assert grid.min().item() == pytest.approx(0, abs=1e-7)
    assert divmod(grid.argmin().item(), 41) == (9, 40)


def test_surface_takes_a_measured_cosine_that_rounds_above_one():
    """Prevents NaN where equal vectors are drawn as points: float32 cosines of parallel rows are
    often 1 + 1e-7."""
    t = torch.tensor([1 + torch.finfo(torch.float32).eps])
    assert modulus_surface(torch.ones(1), t) == 0


def test_ratio_is_symmetric_scale_free_and_bounded(towers):
    """Prevents a ratio that one tower could lower by growing."""
    p, q = towers[2]
    ratio = modulus_ratio(p, q)
    torch.testing.assert_close(ratio, modulus_ratio(q, p))
    torch.testing.assert_close(ratio, modulus_ratio(3 * p, 3 * q))
    assert not torch.isclose(ratio, modulus_ratio(3 * p, q)).any()  # but lengths do count
    assert ((ratio > 0) & (ratio < 1)).all()
    torch.testing.assert_close(modulus_ratio(p, -p), torch.ones(N, dtype=torch.float64))


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
@pytest.mark.parametrize(("where", "value"), [("equal", 0), ("both zero", 0), ("one zero", 1)])
def test_gradient_is_finite_where_the_norm_has_none(towers, where, value, dtype):
    """Prevents one collapsed or identical pair from turning every weight into NaN."""
    p, q = towers[2].to(dtype)
    if where == "both zero":
        p = torch.zeros_like(p)
    q = p.clone() if where == "equal" else torch.zeros_like(q)
    p, q = p.clone().requires_grad_(), q.requires_grad_()
    ratio = modulus_ratio(p, q)
    ratio.sum().backward()
    assert ratio.tolist() == [value] * N
    assert p.grad.isfinite().all()
    assert q.grad.isfinite().all()


@pytest.mark.parametrize("scale", [1e-30, 1e-21, 1e-6, 1e15])
def test_gradient_is_finite_for_very_short_and_very_long_rows(towers, scale):
    """Prevents 1/x * 1/x from overflowing float32 on the way back, as with a square root written by
    hand at 1e-21."""
    p, q = (scale * towers[2]).float()
    p.requires_grad_()
    ratio = modulus_ratio(p, q)
    ratio.sum().backward()
    assert ((ratio >= 0) & (ratio <= 1)).all()
    assert p.grad.isfinite().all()


def test_one_equal_pair_leaves_the_other_rows_gradient_alone(towers):
    """Prevents the guard for equal pairs from flattening the whole batch."""
    p, q = towers[2]
    q = torch.cat([p[:1], q[1:]])
    whole, rest = (p.clone().requires_grad_() for _ in range(2))
    modulus_ratio(whole, q).sum().backward()
    modulus_ratio(rest[1:], q[1:]).sum().backward()
    torch.testing.assert_close(whole.grad[1:], rest.grad[1:])
    assert whole.grad[1:].abs().min() > 0


def _with_cosine(s, towers):
    """[CLS] of tower II at cosine s to tower I's, in both views; the pooled outputs stay as they
    are."""
    cls_i = torch.zeros(2, N, D, dtype=torch.float64)
    cls_i[..., 0] = 1
    s = s.reshape(1, 1)
    cls_ii = torch.cat(
        [s, (1 - s**2).sqrt(), torch.zeros(1, D - 2, dtype=torch.float64)], dim=1
    ).expand(2, N, D)
    return cls_i, cls_ii, towers[2], towers[3]


@pytest.mark.parametrize("s", [-0.9, 0.0, 0.01, 0.049, 0.05, 0.3, 0.99])
def test_loss_falls_with_the_cosine_everywhere(towers, s):
    """The released constant under 0 cuts the gradient where it is needed most; ours must pull
    there, and finitely."""
    cosine = torch.tensor(s, dtype=torch.float64, requires_grad=True)
    ictm(*_with_cosine(cosine, towers)).backward()
    ratios = modulus_ratio(towers[2, 0], towers[3, 1]) + modulus_ratio(towers[3, 0], towers[2, 1])
    assert cosine.grad.item() == pytest.approx(-ratios.mean().item() / max(s, 0.05), rel=1e-9)


def test_the_released_variant_has_no_gradient_under_zero(towers):
    """The difference between paper and code, on the same inputs."""
    cosine = torch.tensor(-0.5, dtype=torch.float64, requires_grad=True)
    ictm(*_with_cosine(cosine, towers), variant="released").backward()
    assert cosine.grad == 0
    # positive, however small: no clamp at 1e-4
    cosine = torch.tensor(1e-5, dtype=torch.float64, requires_grad=True)
    ictm(*_with_cosine(cosine, towers), variant="released").backward()
    assert cosine.grad < 0


def test_the_released_variant_is_half_the_paper_where_the_views_agree(towers):
    """Same cosine in every pair of views: the only difference left is the 1/2."""
    inputs = _with_cosine(torch.tensor(0.4, dtype=torch.float64), towers)
    torch.testing.assert_close(ictm(*inputs, variant="released"), ictm(*inputs) / 2)


def test_the_tangent_meets_the_logarithm(towers):
    """Prevents a step at the joint that an optimiser would sit on."""
    below, above = (
        ictm(*_with_cosine(torch.tensor(0.05 + d, dtype=torch.float64), towers))
        for d in (-1e-9, 1e-9)
    )
    assert below.item() == pytest.approx(above.item(), rel=1e-6)


@pytest.mark.parametrize("variant", VARIANTS)
def test_ictm_ignores_the_order_of_sentences_and_of_towers(towers, variant):
    """Prevents a loss that depends on the order of the batch, on the lengths of [CLS], or not on
    those of the pooled vectors."""
    cls_i, cls_ii, pooled_i, pooled_ii = towers
    loss = ictm(*towers, variant=variant)
    torch.testing.assert_close(ictm(*towers.roll(2, dims=2), variant=variant), loss)
    torch.testing.assert_close(ictm(cls_ii, cls_i, pooled_ii, pooled_i, variant=variant), loss)
    torch.testing.assert_close(
        ictm(3 * cls_i, 0.2 * cls_ii, pooled_i, pooled_ii, variant=variant), loss
    )
    assert not torch.isclose(ictm(cls_i, cls_ii, 3 * pooled_i, pooled_ii, variant=variant), loss)


def test_one_tower_alone(towers):
    """TNCSE Table 5, as the docstring gives it: -log sim(h, h+) * ratio(p, p+)."""
    h, p = towers[0], towers[2]
    expected = (
        sum(_neg_log(_cosine(h[0, n], h[1, n])) * _ratio(p[0, n], p[1, n]) for n in range(N)) / N
    )
    assert ictm(h, h.flip(0), p, p).item() / 2 == pytest.approx(expected, abs=1e-10)


@pytest.mark.parametrize("variant", VARIANTS)
def test_ictm_gradients_are_right(towers, variant):
    """Against finite differences; prevents a detached part."""
    inputs = [tower[:, :3].clone() for tower in towers]
    # cosines of both signs, away from the released variant's jump at 0
    inputs[1] = inputs[0].mean(0) + 0.3 * inputs[1]
    inputs = [tower.requires_grad_() for tower in inputs]
    assert torch.autograd.gradcheck(lambda *x: ictm(*x, variant=variant), inputs)


def test_ratio_gradients_are_right(towers):
    """Against finite differences; prevents a detached norm."""
    p, q = (pooled.clone().requires_grad_() for pooled in towers[2])
    assert torch.autograd.gradcheck(modulus_ratio, (p, q))


@pytest.mark.parametrize("autocast", [False, True])
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float32])
@pytest.mark.parametrize("variant", VARIANTS)
def test_half_precision_is_finite_and_close(towers, variant, dtype, autocast):
    """Prevents squares that overflow float16, and norms that are rounded to 8 bits."""
    # float16 squares of 256 and more would be infinite
    towers = (100 * towers).to(dtype).requires_grad_()
    with torch.autocast("cpu", dtype=torch.bfloat16, enabled=autocast):
        loss = ictm(*towers, variant=variant)
    loss.backward()
    assert loss.dtype == torch.float32
    assert towers.grad.isfinite().all()
    assert loss.item() == pytest.approx(
        ictm(*towers.detach().double(), variant=variant).item(), rel=1e-4
    )


def test_identical_towers_cost_nothing(towers):
    """Prevents NaN where both factors are 0."""
    same = towers[0, :1].expand(2, N, D)
    assert ictm(same, same, same, same).item() == 0


def test_wrong_shapes_and_names_do_not_give_a_number(towers):
    """Rows of (2N, d) that nobody split into views would be taken for views; called without the
    tests' type checker."""
    plain_ictm, plain_ratio = inspect.unwrap(ictm), inspect.unwrap(modulus_ratio)
    one, two, p, q = towers
    for wrong, shapes in (
        ((one, two[:, :5], p, q), r"cls_i \(2, 6, 5\), cls_ii \(2, 5, 5\)"),
        ((one, two, p[:, :1], q[:, :1]), r"pooled_i \(2, 1, 5\), pooled_ii \(2, 1, 5\)"),
        (towers.reshape(4, 2 * N, D), r"cls_i \(12, 5\)"),
        (towers[:, :, :0], r"cls_i \(2, 0, 5\)"),
    ):
        with pytest.raises(DataError, match=rf"one shape \(2, N, d\), .*{shapes}"):
            plain_ictm(*wrong)
    with pytest.raises(DataError, match=r"one shape \(N, d\), got p \(6, 5\), q \(1, 5\)"):
        plain_ratio(p[0], p[1, :1])
    with pytest.raises(SettingsError, match="did you mean 'paper'"):
        plain_ictm(*towers, variant="papr")


def test_the_released_term_of_one_tower_is_not_zero(towers):
    """Prevents a sentence compared with itself: both views of one tower take the places of the two
    towers."""
    h, _, p, _ = towers
    h = h.abs()  # positive cosines, where both wordings are a plain -log
    pairs = [(-math.log(_cosine(h[0, n], h[1, n])), _ratio(p[0, n], p[1, n])) for n in range(N)]
    expected = sum(weight * ratio for weight, ratio in pairs) / N
    assert (ictm(h, h, p, p, variant="released") / 2).item() == pytest.approx(expected / 2)
    assert (ictm(h, h.flip(0), p, p) / 2).item() == pytest.approx(expected)
    assert expected > 0.01
