"""Figures that explain a method: what is drawn is what the equations say."""

import torch

from cselab.losses import info_nce, modulus_surface
from cselab.workbook import plots


def test_a_batch_is_drawn_with_the_cosines_that_the_loss_reads():
    """Prevents a transposed matrix, rows drawn from below, and marks beside the duplicates."""
    a, b = torch.randn(2, 5, 8, generator=torch.Generator().manual_seed(0))
    figure = plots.batch_cosines({"before": (a, b), "after": (a, a)}, [(0, 3)])
    heat = [trace for trace in figure.data if trace.type == "heatmap"]
    expected = torch.cosine_similarity(a[:, None], b[None], dim=-1)
    torch.testing.assert_close(torch.tensor(heat[0].z), expected)
    torch.testing.assert_close(torch.tensor(heat[1].z).diagonal(), torch.ones(5))
    marks = next(trace for trace in figure.data if trace.type == "scatter")
    assert (list(marks.x), list(marks.y)) == ([3], [0])
    assert figure.layout.yaxis.autorange == "reversed"


def test_points_move_in_one_plane_for_all_moments():
    """Prevents axes of their own for each panel, under which points that stand still move."""
    still = torch.randn(12, 6, generator=torch.Generator().manual_seed(1))
    groups = ["a"] * 6 + ["b"] * 6
    figure = plots.moving_points({"0": still, "10": 3 * still, "20": -still}, groups)
    assert [trace.name for trace in figure.data] == ["a", "b"] * 3
    places = [torch.tensor([trace.x, trace.y]) for trace in figure.data]
    for one, same, other in zip(places[:2], places[2:4], places[4:], strict=True):
        torch.testing.assert_close(one, same, atol=1e-5, rtol=0)  # lengths do not count
        assert not torch.allclose(one, other, atol=1e-2)
    layout = figure.layout
    assert layout.xaxis.range == layout.xaxis2.range == layout.xaxis3.range == layout.yaxis.range


def test_shares_of_negatives_are_those_of_the_gradient():
    """Prevents a curve of the softmax over all candidates, or of another temperature."""
    cosines = torch.tensor([-0.5, 0.2, 0.9])
    figure = plots.negative_shares([0.5], cosines.tolist())
    # one row whose candidates have these cosines: by autograd
    logits = torch.cat([torch.tensor([1.0]), cosines]).requires_grad_()
    loss = torch.nn.functional.cross_entropy(logits[None] / 0.5, torch.tensor([0]))
    (gradient,) = torch.autograd.grad(loss, logits)
    expected = 100 * gradient[1:] / gradient[1:].sum()
    torch.testing.assert_close(torch.tensor(figure.data[0].y), expected, rtol=1e-5, atol=1e-4)
    torch.testing.assert_close(  # and that loss is the library's
        info_nce(torch.eye(2), torch.eye(2), temperature=0.5),
        torch.nn.functional.cross_entropy(torch.tensor([[2.0, 0.0]]), torch.tensor([0])),
    )


def test_the_arrows_of_the_modulus_term_lead_downhill():
    """Prevents a field whose arrows point up, or along another function than the contours."""
    figure = plots.modulus_field(size=6)
    contour = figure.data[0]

    def value(k, t):
        return -t.log() * modulus_surface(k, t)

    k, t = torch.tensor(contour.x), torch.tensor(contour.y)
    torch.testing.assert_close(torch.tensor(contour.z), value(k[None, :], t[:, None]))
    lines = figure.data[1]
    starts = value(*(torch.tensor(list(axis[::3])) for axis in (lines.x, lines.y)))
    little = [
        torch.tensor([a + 0.05 * (b - a) for a, b in zip(axis[::3], axis[1::3], strict=True)])
        for axis in (lines.x, lines.y)
    ]
    assert (value(*little) < starts).all()
