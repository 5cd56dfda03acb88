"""InfoNCE and ICNCE against double loops, closed forms and properties."""

import inspect
import math

import pytest
import torch

from cselab.errors import DataError, SettingsError
from cselab.losses import icnce, info_nce
from cselab.losses.info_nce import without_duplicates

N, D, TAU = 7, 5, 0.05


def _cosine(x, y) -> float:
    x, y = x.tolist(), y.tolist()
    dot = sum(p * q for p, q in zip(x, y, strict=True))
    return dot / math.sqrt(sum(p * p for p in x)) / math.sqrt(sum(q * q for q in y))


def _row_loss(anchor, candidates, positive, tau) -> float:
    logits = [_cosine(anchor, candidate) / tau for candidate in candidates]
    top = max(logits)
    return (
        top
        + math.log(sum(math.exp(logit - top) for logit in logits))
        - _cosine(anchor, positive) / tau
    )


def _loop_other_view(rows, columns, tau):
    """Rows and columns view-major; the diagonal is left out, the positive is the other view."""
    size = len(rows)
    losses = []
    for r in range(size):
        candidates = [columns[c] for c in range(size) if c != r]
        losses.append(_row_loss(rows[r], candidates, columns[(r + size // 2) % size], tau))
    return sum(losses) / size


def loop_cross(a, b, tau):
    return sum(_row_loss(a[i], list(b), b[i], tau) for i in range(len(a))) / len(a)


def cross(views, **options):
    return info_nce(*views[0], **options)


def every(views, **options):
    return info_nce(*views[0], layout="all", **options)


def paper(views, **options):
    return icnce(*views, **options)


def released(views, **options):
    return icnce(*views, variant="released", **options)


LOOPS = {
    cross: lambda v, tau: loop_cross(*v[0], tau),
    every: lambda v, tau: _loop_other_view([*v[0, 0], *v[0, 1]], [*v[0, 0], *v[0, 1]], tau),
    paper: lambda v, tau: (loop_cross(*v[:, 0], tau) + loop_cross(*v[:, 1], tau)) / 2,
    released: lambda v, tau: _loop_other_view([*v[0, 0], *v[0, 1]], [*v[1, 0], *v[1, 1]], tau),
}
each_loss = pytest.mark.parametrize("loss", LOOPS)
"""InfoNCE of the first tower's views, in two layouts; ICNCE of both towers', in two variants."""


@pytest.fixture
def views():
    return torch.randn(2, 2, N, D, dtype=torch.float64, generator=torch.Generator().manual_seed(0))


@each_loss
@pytest.mark.parametrize("tau", [0.05, 1.0])
def test_a_loss_equals_the_double_loop(views, loss, tau):
    """Prevents a positive that is another sentence's, a layout with the wrong candidates, and
    towers or views that change places."""
    expected = LOOPS[loss](views, tau)
    assert loss(views, temperature=tau).item() == pytest.approx(expected, abs=1e-10)


def test_defaults_are_the_papers(views):
    """Prevents a call without options from computing something else than the papers do."""
    a, b = views[0]
    assert info_nce(a, b) == info_nce(a, b, temperature=0.05, layout="cross")
    assert icnce(*views) == icnce(*views, temperature=0.05, variant="paper")


@each_loss
@pytest.mark.parametrize("tau", [0.05, 0.5])
def test_closed_forms(loss, tau):
    """Orthonormal views: log(1 + negatives * e^(-1/tau)); collapsed ones: the log of the number of
    candidates. Prevents one candidate too many or too few."""
    negatives = N - 1 if loss in (cross, paper) else 2 * N - 2
    orthonormal = torch.eye(N, dtype=torch.float64).expand(2, 2, N, N)
    expected = math.log1p(negatives * math.exp(-1 / tau))
    assert loss(orthonormal, temperature=tau).item() == pytest.approx(expected, abs=1e-12)
    same = torch.ones(2, 2, N, D, dtype=torch.float64)
    assert loss(same, temperature=tau).item() == pytest.approx(math.log(1 + negatives))


def test_two_sentences_by_hand():
    """N = 2, cosines c for the positive and d for the one negative: softplus((d - c) / tau);
    halving tau doubles it."""
    a = torch.eye(2, dtype=torch.float64)
    b = torch.tensor([[0.6, 0.8], [0.8, 0.6]], dtype=torch.float64)
    for tau in (1.0, 0.5, 0.25):
        expected = math.log1p(math.exp((0.8 - 0.6) / tau))
        assert info_nce(a, b, temperature=tau).item() == pytest.approx(expected, abs=1e-12)


@each_loss
def test_lengths_and_the_order_of_sentences_do_not_count(views, loss):
    """Prevents an inner product in the place of the cosine, and a loss that depends on the order of
    the batch."""
    lengths = 0.1 + 10 * torch.rand(2, 2, N, 1, generator=torch.Generator().manual_seed(1))
    torch.testing.assert_close(loss(views * lengths), loss(views))
    rolled = views.roll(2, dims=2)
    torch.testing.assert_close(loss(rolled), loss(views))
    # which rows belong together does matter
    assert not torch.isclose(info_nce(rolled[0, 0], views[0, 1]), cross(views))


def test_which_arguments_may_be_swapped(views):
    """`all` is symmetric in its views; `cross` and both ICNCE take the first argument as anchor
    (JTCSE's coin)."""
    a, b = views[0]
    torch.testing.assert_close(info_nce(a, b, layout="all"), info_nce(b, a, layout="all"))
    assert not torch.isclose(info_nce(a, b), info_nce(b, a))
    for loss in (paper, released):
        assert not torch.isclose(loss(views), loss(views.flip(0)))
        torch.testing.assert_close(loss(views), loss(views.flip(1)))  # the order of views


def test_released_icnce_ignores_the_same_view_of_the_same_sentence():
    """Paper and code differ: the diagonal is the positive in the paper, and in the released code
    neither that nor a negative.

    Tower I is orthonormal. Each row of tower II has cosine 0.5 with the other view, `own` with its
    counterpart on the diagonal and 0 with all else, so that `own` changes the diagonal alone.
    """
    rows = 6
    i = torch.eye(rows, rows + 1, dtype=torch.float64).reshape(2, rows // 2, rows + 1)
    spare = torch.eye(rows + 1, dtype=torch.float64)[-1]

    def tower_ii(own: float):
        return 0.5 * i.flip(0) + own * i + math.sqrt(0.75 - own**2) * spare

    released = [icnce(i, tower_ii(own), variant="released").item() for own in (-0.8, 0.0, 0.8)]
    assert released == pytest.approx([math.log1p((rows - 2) * math.exp(-0.5 / TAU))] * 3, abs=1e-12)
    paper = [icnce(i, tower_ii(own)).item() for own in (-0.8, 0.0, 0.8)]
    assert paper[0] > paper[1] > paper[2]


@each_loss
def test_gradients_are_right(views, loss):
    """Against finite differences; prevents a detached part."""
    few = views[:, :, :4].clone().requires_grad_()
    assert torch.autograd.gradcheck(lambda x: loss(x, temperature=0.5), (few,))


@each_loss
@pytest.mark.parametrize("autocast", [False, True])
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float32])
def test_half_precision_is_finite_and_close(views, loss, dtype, autocast):
    """Prevents logits of 20 from being rounded to steps of 1/8 in bfloat16, or a loss that is NaN
    under autocast."""
    x = views.to(dtype).requires_grad_()
    with torch.autocast("cpu", dtype=torch.bfloat16, enabled=autocast):
        value = loss(x)
    value.backward()
    assert value.dtype == torch.float32
    assert x.grad.isfinite().all()
    assert value.item() == pytest.approx(loss(x.detach().double()).item(), abs=1e-4)


@each_loss
def test_bad_values_are_refused(views, loss):
    """Prevents NaN, or a loss of 0, from a batch or a temperature that makes no sense."""
    with pytest.raises(DataError, match="a batch of 1 has no negatives"):
        loss(views[:, :, :1])
    for temperature in (0.0, -0.05, math.nan):
        with pytest.raises(SettingsError, match=f"above 0, got {temperature}; .* 0.05"):
            loss(views, temperature=temperature)


def test_wrong_shapes_and_names_do_not_give_a_number(views):
    """What the tests' own type checker would catch, a notebook must catch too: a typo would run the
    other variant."""
    plain_info_nce, plain_icnce = inspect.unwrap(info_nce), inspect.unwrap(icnce)
    a, b = views[0]
    with pytest.raises(DataError, match=r"one shape \(N, d\), got a \(7, 5\), b \(6, 5\)"):
        plain_info_nce(a, b[:6])
    with pytest.raises(DataError, match=r"one shape \(N, d\), got a \(2, 7, 5\)"):
        plain_info_nce(*views)
    for shape in ((2 * N, D), (1, 2 * N, D)):
        with pytest.raises(DataError, match=r"must have one shape \(2, N, d\)"):
            plain_icnce(*views.reshape(2, *shape))
    with pytest.raises(SettingsError, match="did you mean 'cross'"):
        plain_info_nce(a, b, layout="corss")
    with pytest.raises(SettingsError, match="did you mean 'released'"):
        plain_icnce(*views, variant="relased")


# ------------------------------------------------------------------------------------- candidates


def test_more_negatives_need_the_cross_layout(views):
    """Prevents a queue that layout "all" ignores, so that ESimCSE in it would be SimCSE."""
    a, b = views[0]
    assert info_nce(a, b, more_negatives=b) > info_nce(a, b)
    with pytest.raises(SettingsError, match="more_negatives .*layout='cross'"):
        info_nce(a, b, layout="all", more_negatives=b)


IDS = torch.tensor([4, 1, 4, 2, 3, 1, 4])  # sentences 0, 2, 6 are one text, and 1, 5


def loop_without_duplicates(rows, columns, ids, positive_of, tau):
    """Row by row: the positive, and every candidate of another text."""
    losses = []
    for r in range(len(rows)):
        candidates = [
            columns[c] for c in range(len(columns)) if c == positive_of(r) or ids[c] != ids[r]
        ]
        losses.append(_row_loss(rows[r], candidates, columns[positive_of(r)], tau))
    return sum(losses) / len(losses)


def test_a_duplicate_is_no_negative(views):
    """Prevents a sentence from being pushed from itself: round trips that came back unchanged are
    duplicates."""
    a, b = views[0]
    both, ids = [*a, *b], [*IDS, *IDS]
    cross = loop_without_duplicates(a, b, IDS, lambda r: r, TAU)
    every = loop_without_duplicates(both, both, ids, lambda r: (r + N) % (2 * N), TAU)
    assert info_nce(a, b, ids=IDS).item() == pytest.approx(cross, abs=1e-10)
    assert info_nce(a, b, ids=IDS, layout="all").item() == pytest.approx(every, abs=1e-10)
    for layout in ("cross", "all"):
        assert info_nce(a, b, ids=IDS, layout=layout) < info_nce(a, b, layout=layout)
        torch.testing.assert_close(
            info_nce(a, b, ids=torch.arange(N), layout=layout), info_nce(a, b, layout=layout)
        )
        assert torch.isfinite(info_nce(a, b, ids=torch.zeros(N, dtype=torch.long), layout=layout))


def test_a_duplicate_is_no_negative_across_towers(views):
    """The same between towers; prevents ids that only InfoNCE reads."""
    i, ii = views
    expected = sum(loop_without_duplicates(i[v], ii[v], IDS, lambda r: r, TAU) for v in (0, 1)) / 2
    assert icnce(i, ii, ids=IDS).item() == pytest.approx(expected, abs=1e-10)
    rows, columns = [*i[0], *i[1]], [*ii[0], *ii[1]]
    released = loop_without_duplicates(
        rows, columns, [*IDS, *IDS], lambda r: (r + N) % (2 * N), TAU
    )
    assert icnce(i, ii, ids=IDS, variant="released").item() == pytest.approx(released, abs=1e-10)


def test_ids_of_another_batch_are_refused(views):
    """Prevents ids that are broadcast over the wrong rows."""
    with pytest.raises(DataError, match="one id per sentence: expected 7, got 6"):
        inspect.unwrap(without_duplicates)(views[0, 0] @ views[0, 1].T, IDS[:6], torch.arange(N))
