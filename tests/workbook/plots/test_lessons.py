"""Figures that explain a method: what is drawn is what the equations say."""

import torch

from cselab.losses import ictm, info_nce, modulus_ratio
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


def test_the_paths_of_the_modulus_terms_lead_down_the_losses():
    """Prevents paths along another function than the loss that is trained, and the two panels
    exchanged."""
    figure = plots.modulus_paths([(2.0, 60.0), (0.5, 30.0)])
    paths = [torch.tensor([line.x, line.y]).T for line in figure.data if line.marker.size]
    for alone, weighed in zip(paths[:2], paths[2:], strict=True):
        p = torch.tensor([[1.0, 0.0]])
        ratios = modulus_ratio(p.expand_as(alone), alone)
        assert ratios[-1] < 0.03 < ratios[0]
        p, q = (torch.stack([x, x]) for x in (p.expand_as(weighed), weighed))
        terms = torch.stack([ictm(p[:, [i]], q[:, [i]], p[:, [i]], q[:, [i]]) for i in range(51)])
        assert (terms.diff() <= 0).all()
        assert terms[-1] < 0.001 * terms[0]
        torch.testing.assert_close(weighed[-1, 1], torch.tensor(0.0), atol=0.05, rtol=0)
        assert modulus_ratio(p[0, [-1]], weighed[[-1]]) > 0.2  # the length stays wrong
