"""The loss playground: points that a method's own loss moves."""

import pytest
import torch

from cselab.errors import SettingsError
from cselab.losses import info_nce, modulus_ratio
from cselab.methods import Method, StepContext, create, method_names, registered
from cselab.widgets import LossPlayground

SINGLE = [
    name
    for name in method_names()
    if issubclass(registered(name), Method)
    and registered(name).views == 2
    and len(registered(name).tower_names) == 1
]
"""Methods of one tower and two views."""


def test_gradient_descent_lowers_the_methods_own_loss(playground):
    """Prevents points that move along the gradient, and a loss of something else."""
    playground.controls["rate"].value = 0.003
    before = playground.history[0]
    playground.descend(60)
    after = playground.history[-1]
    assert sum(after[term] for term in playground.method.terms) < 0.5 * sum(
        before[term] for term in playground.method.terms
    )
    assert len(playground.history) == 61


def test_a_step_is_the_gradient_of_what_the_sliders_say(playground):
    """Prevents a weight or a temperature that the picture shows and the descent does not follow."""
    for name in ("icnce", "ictm"):
        playground.controls[name].value = 0
    playground.controls["nce"].value, playground.controls["temperature"].value = 0.5, 0.1
    start = {space: rows.clone().requires_grad_() for space, rows in playground.points.items()}
    tau = playground.controls["temperature"].value
    loss = 0.5 * sum(info_nce(*rows, temperature=tau) for rows in start.values())
    gradients = torch.autograd.grad(loss, list(start.values()))
    playground.descend()
    for (space, rows), gradient in zip(start.items(), gradients, strict=True):
        torch.testing.assert_close(
            playground.points[space], rows.detach() - playground.controls["rate"].value * gradient
        )
    assert playground.terms == {"nce": 0.5}


def test_every_offered_term_moves_points(playground):
    """Prevents a slider without an effect, and a term that the playground's vectors do not feed."""
    for term in playground.offered:
        for name in playground.offered:
            playground.controls[name].value = float(name == term)
        playground.draw()
        before = {space: rows.clone() for space, rows in playground.points.items()}
        playground.descend()
        assert any(
            not torch.equal(before[space], rows) for space, rows in playground.points.items()
        ), term
        assert set(playground.method.terms) == {term}


@pytest.mark.parametrize("name", SINGLE)
def test_any_method_of_two_views_is_played_with(small_pretrained, name):
    """Prevents a method whose playground breaks when a slider is moved, and a term that reads a
    text which points have not."""
    config = registered(name).Config(terms=["nce"])
    if name == "scd":
        config = config.changed({"projection": 16})
    playground = LossPlayground(create(config, folders=[small_pretrained]))
    for term in playground.offered:
        playground.controls[term].value = 0.5
    playground.descend()
    playground.static()
    assert set(playground.method.terms) == set(playground.offered)


@pytest.mark.parametrize(
    ("name", "message"),
    [("diffcse", "2 views and the terms nce, rtd"), ("simcse_supervised", "has 3 views")],
)
def test_a_method_that_points_cannot_stand_for_is_refused(small_pretrained, name, message):
    """Prevents a playground whose points are not what the method's loss reads."""
    with pytest.raises(SettingsError, match=message):
        LossPlayground(create(name, folders=[small_pretrained]))


def test_without_a_term_nothing_moves(playground):
    """Prevents an error when all sliders are at 0."""
    for name in playground.offered:
        playground.controls[name].value = 0
    before = {space: rows.clone() for space, rows in playground.points.items()}
    playground.descend(3)
    assert all(torch.equal(before[space], rows) for space, rows in playground.points.items())
    playground.static()


def test_one_point_is_set_by_its_sliders(playground):
    """Prevents sliders that move another point, or that move on when a point is only picked."""
    playground.widget()
    playground.point.value = ("tower II", 1, 2)
    before = {space: rows.clone() for space, rows in playground.points.items()}
    playground.angle.value, playground.length.value = 90, 200
    moved = playground.points["tower II"][1, 2]
    torch.testing.assert_close(moved, torch.tensor([0.0, 2.0]), atol=1e-5, rtol=0)
    before["tower II"][1, 2] = moved
    assert all(torch.equal(before[space], rows) for space, rows in playground.points.items())


def test_on_the_sphere_lengths_stay(playground):
    """Prevents points that leave the sphere with a step."""
    playground.controls["shape"].value = "sphere"
    playground.descend(10)
    for rows in playground.points.values():
        assert rows.shape[-1] == 3
        torch.testing.assert_close(rows.norm(dim=-1), torch.ones(rows.shape[:-1]))


def test_the_surface_carries_the_positives(playground):
    """The marked pairs' l_TN is the loss's own ratio between view a of one tower and view b of the
    other."""
    marks = playground.static().data[-1]
    p, q = playground.points["tower I"][0], playground.points["tower II"][1]
    k, t = torch.tensor(marks.x), torch.tensor(marks.y)
    torch.testing.assert_close(
        (1 + k**2 - 2 * k * t).sqrt() / (1 + k), modulus_ratio(p, q), atol=1e-4, rtol=1e-4
    )


def test_the_method_in_the_playground_is_what_the_trainer_takes(playground, word_tokenizer):
    """Prevents weights that the sliders show and a training would not have."""
    playground.controls["dcl"].value = 0.5
    texts = 2 * ["a man is playing guitar .", "the dog was sleeping"]
    batch = word_tokenizer(texts, padding=True, return_tensors="pt", return_token_type_ids=False)
    method = playground.method
    assert isinstance(method, Method)
    assert method.losses(dict(batch), StepContext.at(0, 0)).keys() == method.terms.keys()
    assert playground.terms == {"nce": 1, "icnce": 1, "ictm": 1, "dcl": 0.5}
    again = method.settings.changed({"terms": playground.terms})
    assert {name: term.weight for name, term in again.terms.items()} == playground.terms
