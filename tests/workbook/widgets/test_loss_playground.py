"""The loss playground: points that a method's own loss moves."""

import ast
import json
import re
from pathlib import Path

import pytest
import torch

from cselab.errors import SettingsError
from cselab.losses import info_nce
from cselab.methods import Method, StepContext, create, method_names, registered
from cselab.methods.terms import term
from cselab.workbook.widgets import LossPlayground
from cselab.workbook.widgets.descent import as_lists

NOTEBOOKS = Path(__file__).resolve().parents[3] / "notebooks"
SINGLE = [
    name
    for name in method_names()
    if issubclass(registered(name), Method)
    and registered(name).views == 2
    and registered(name).reads == "text"
    and len(registered(name).tower_names) == 1
]
"""Methods of one tower and two views of a text."""


def test_gradient_descent_lowers_the_methods_own_loss(playground):
    """Prevents points that move along the gradient, and a loss of something else."""
    playground.rate = 0.003
    before = playground.history[0]
    playground.descend(60)
    after = playground.history[-1]
    first, last = (sum(row[term] for term in playground.method.terms) for row in (before, after))
    assert last < 0.5 * first
    assert len(playground.history) == 61
    playground.terms = {}
    playground.descend()
    assert len(playground.history) == 61  # without a term nothing moves


def test_a_step_is_the_gradient_of_what_the_controls_say(playground):
    """Prevents a weight or a temperature that the picture shows and the descent does not follow."""
    playground.weights = {"nce": 0.5}
    playground.temperature = 0.1
    start = {space: rows.clone().requires_grad_() for space, rows in playground.points.items()}
    loss = 0.5 * sum(info_nce(*rows, temperature=0.1) for rows in start.values())
    gradients = torch.autograd.grad(loss, list(start.values()))
    playground.descend()
    for (space, rows), gradient in zip(start.items(), gradients, strict=True):
        torch.testing.assert_close(
            playground.points[space], rows.detach() - playground.rate * gradient
        )
    assert playground.terms == {"nce": 0.5}


@pytest.mark.parametrize("name", SINGLE)
def test_any_method_of_two_views_is_played_with(small_pretrained, name):
    """Prevents a method whose playground breaks when a slider is moved, a term that reads a text
    which points have not, and a state that the browser cannot read."""
    config = registered(name).Config(terms=["nce"])
    if name == "scd":
        config = config.changed({"projection": 16})
    playground = LossPlayground(create(config, folders=[small_pretrained]))
    playground.weights = dict.fromkeys(playground.offered, 0.5)
    playground.descend()
    playground.static()
    assert set(playground.method.terms) == set(playground.offered)
    unknown = [entry["name"] for entry in playground.catalogue if not entry["known"]]
    assert unknown == ["whitened"]
    assert json.loads(json.dumps(playground.page_state()))["weights"] == playground.weights


@pytest.mark.parametrize(
    ("name", "sentences", "message"),
    [
        ("diffcse", 5, "2 views and the terms nce, rtd"),
        ("simcse_supervised", 5, "has 3 views"),
        ("simcse", 1, "sentences is 1; .* 2 or more"),
    ],
)
def test_points_that_cannot_stand_for_a_methods_loss_are_refused(
    small_pretrained, name, sentences, message
):
    """Prevents a playground whose points are not what the method's loss reads, and one sentence
    without another to compare it with."""
    with pytest.raises(SettingsError, match=message):
        LossPlayground(create(name, folders=[small_pretrained]), sentences=sentences)


def test_on_the_sphere_lengths_stay(playground):
    """Prevents points that leave the sphere with a step."""
    playground.shape = "sphere"
    playground.descend(10)
    for rows in playground.points.values():
        assert rows.shape[-1] == 3
        torch.testing.assert_close(rows.norm(dim=-1), torch.ones_like(rows[..., 0]))


def test_the_method_in_the_playground_is_what_the_trainer_takes(playground, word_tokenizer):
    """Prevents weights that the sliders show and a training would not have."""
    playground.terms = {**playground.terms, "dcl": 0.5}
    texts = 2 * ["a man is playing guitar .", "the dog was sleeping"]
    batch = word_tokenizer(texts, padding=True, return_tensors="pt", return_token_type_ids=False)
    method = playground.method
    assert isinstance(method, Method)
    assert method.losses(dict(batch), StepContext.at(0, 0)).keys() == method.terms.keys()
    assert playground.terms == {"nce": 1, "icnce": 1, "ictm": 1, "dcl": 0.5}
    again = method.settings.changed({"terms": playground.terms})
    assert {name: term.weight for name, term in again.terms.items()} == playground.terms


def test_hyperparameters_are_part_of_the_setting(playground):
    """Prevents an exported setting that trains another variant than the one that was shown."""
    options = playground.options
    playground.options = {**options, "dcl": {**options["dcl"], "variant": "paper"}}
    playground.weights = {"nce": 1, "dcl": 0.2}
    exported = {"nce": 1, "dcl": {"weight": 0.2, "variant": "paper"}}
    assert playground.terms == exported
    again = registered("jtcse").Config(terms=exported)
    assert again.terms == playground.method.terms
    playground.terms = {"icnce": {"variant": "released"}}
    assert playground.terms == {"icnce": {"weight": 1, "variant": "released"}}
    for terms in ({"nce": 1, "dcl": 1}, ["nce", "dcl"], {"dcl": {"temperature": 3}}):
        playground.terms = terms
        assert playground.method.terms == registered("jtcse").Config(terms=terms).terms


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"weights": {"nse": 1}}, "nce"),
        ({"weights": {"nce": -1}}, "0 or more"),
        ({"options": {"dcl": {"variant": "papers"}}}, "variant"),
    ],
)
def test_a_wrong_control_is_refused(playground, change, message):
    """Prevents a misspelt term that is left out in silence."""
    before = playground.terms
    ((name, value),) = change.items()
    with pytest.raises(SettingsError, match=message):
        setattr(playground, name, value)
    assert playground.terms == before


def moved(playground, space, view, n, point):
    """The points as the browser has them, with one moved."""
    lists = json.loads(json.dumps(playground.coordinates))
    lists[space][view][n] = point
    return lists


def news(playground, first, rows, **more):
    """What the browser says of steps from `first` on."""
    version = playground.past["version"]
    return {"message": "view 1", "version": version, "from": first, "rows": rows, **more}


def test_a_dragged_point_moves_alone(playground):
    """Prevents other points that move by a rounding, and a browser that gets its own move back."""
    before = {space: rows.clone() for space, rows in playground.points.items()}
    lists = moved(playground, "tower II", 1, 2, [0.1, 2.4000000000000004])
    sent = []
    playground.observe(lambda change: sent.append(change["name"]), names=["coordinates", "past"])
    rows = [{**playground.history[0], "nce": 3.0}]
    playground.set_state({"coordinates": lists, "news": news(playground, 0, rows, start=lists)})
    assert sent == ["coordinates"]
    assert playground.coordinates["tower II"][1][2] == [0.1, 2.4000000000000004]
    before["tower II"][1, 2] = torch.tensor([0.1, 2.4000000000000004], dtype=torch.float64)
    assert all(torch.equal(before[space], rows) for space, rows in playground.points.items())
    assert playground.history[0]["nce"] == 3.0


def test_pythons_points_and_history_follow_the_browser(playground):
    """Prevents a cell that computes with other points than the reader sees, and a descent in
    Python that does not go on from there."""
    playground.descend(5)
    lists = moved(playground, "tower I", 0, 0, [1.0, 1.0])
    rows = [{"step": 3, "nce": 1.0}, {"step": 4, "nce": None}]
    playground.set_state({"coordinates": lists, "news": news(playground, 3, rows)})
    assert playground.acknowledged == "view 1"
    assert [row["step"] for row in playground.history] == [0, 1, 2, 3, 4]
    assert playground.points["tower I"][0, 0].tolist() == [1.0, 1.0]
    version = playground.past["version"]
    playground.descend(2)
    assert [row["step"] for row in playground.history] == [0, 1, 2, 3, 4, 5, 6]
    assert playground.past["version"] == version + 1
    assert [row["step"] for row in playground.past["rows"]] == [0, 1, 2, 3, 4, 5, 6]
    assert playground.coordinates["tower I"] == playground.points["tower I"].tolist()


def test_the_shape_that_the_browser_sends_comes_with_points(playground):
    """Prevents points of the kernel's own in the place of those that the reader sees."""
    lists = {
        space: [[[*row, 0.5] for row in view] for view in views]
        for space, views in playground.coordinates.items()
    }
    message = news(playground, 0, [playground.history[0]], start=lists)
    playground.set_state({"shape": "space", "coordinates": lists, "news": message})
    assert playground.coordinates == lists
    assert all(rows.shape[-1] == 3 for rows in playground.points.values())
    playground.descend(1)
    playground.shape = "plane"
    assert all(rows.shape[-1] == 2 for rows in playground.points.values())


def test_python_ignores_steps_that_do_not_follow_its_own(playground):
    """Prevents a history with steps left out, and one that a browser cuts off which has not heard
    yet of a descent in Python: Python's own points go back to the browser."""
    lists = moved(playground, "tower I", 0, 0, [1.0, 1.0])
    late = news(playground, 1, [{"step": 1, "nce": 1.0}])
    for message in (news(playground, 7, [{"step": 7, "nce": 1.0}]), late):
        playground.descend(2)
        points, steps = playground.points, len(playground.history)
        playground.set_state({"coordinates": lists, "news": message})
        assert playground.points is points
        assert [row["step"] for row in playground.history] == list(range(steps))
        assert playground.coordinates == playground.past["points"] == as_lists(points)
        assert playground.acknowledged == ""


def test_a_term_that_needs_float32_gets_it(own_playground):
    """Prevents a term with float32 parameters of its own that raises at the first point."""

    @term
    def turned(self, outputs, step):
        a, b = outputs.sentence
        return (a @ torch.eye(a.shape[-1]) - b).square().mean()

    playground = own_playground(["turned"], turned=turned)
    playground.descend()
    assert playground.points["sentence"].dtype == torch.float32


def test_what_is_not_finite_reaches_the_browser_as_null(playground):
    """Prevents the word "nan" in the place of a number after a descent that diverged, which breaks
    the table of numbers, and an error when the browser says such points again."""
    playground.points = {x: rows * float("nan") for x, rows in playground.points.items()}
    state = playground.page_state()
    json.dumps(state, allow_nan=False)
    assert state["past"]["rows"][-1]["nce"] is None
    sent = []
    playground.send = sent.append
    asked = {"do": "terms", "id": "1", "terms": ["nce"], "step": 0}
    playground._hear(playground, {**asked, "points": state["coordinates"]}, [])
    assert sent[0]["terms"]["nce"]["value"] is None
    json.dumps(sent, allow_nan=False)
    message = news(playground, 0, state["past"]["rows"], start=state["coordinates"])
    playground.set_state({"coordinates": state["coordinates"], "news": message})
    assert playground.points["tower I"].isnan().all()
    playground.figure_output()


def test_numbers_that_a_hyperparameter_excludes_are_excluded_in_the_browser(playground):
    """Prevents a field that takes 0 where Python refuses it."""
    fields = {
        (entry["name"], field["name"]): field
        for entry in playground.catalogue
        for field in entry["fields"]
    }
    for name in ("negative_weight", "positive_scale"):
        assert fields["off_info", name]["exclusiveMinimum"] == 0
        with pytest.raises(SettingsError, match=name):
            playground.options = {"off_info": {name: 0}}
    temperature = fields["dcl", "temperature"]
    assert (temperature["minimum"], temperature["maximum"]) == (1e-4, 1e4)
    assert fields["arc", "margin"]["maximum"] == 90
    assert fields["dcl", "variant"]["enum"] == ["paper", "released"]


def test_the_kernel_computes_what_the_browser_does_not_know(playground):
    """Prevents a term of your own whose arrows are of other points, of another weight, or of none:
    values and gradients are those of the term alone; the settings stay."""
    sent, before = [], playground.method.settings
    playground.send = sent.append
    points = {space: (2 * rows).tolist() for space, rows in playground.points.items()}
    asked = {"do": "terms", "id": 7, "terms": ["whitened", "nce"], "step": 3, "points": points}
    playground._hear(playground, asked, [])
    (answer,) = sent
    rows = [(2 * x).detach().requires_grad_() for x in playground.points.values()]
    loss = sum(info_nce(*x, temperature=0.05) for x in rows)
    assert answer["id"] == 7
    assert answer["terms"]["nce"]["value"] == pytest.approx(loss.item(), rel=1e-5)
    for found, expected in zip(
        answer["terms"]["nce"]["gradients"], torch.autograd.grad(loss, rows), strict=True
    ):
        found = torch.tensor(found, dtype=torch.float64)
        torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-5)
    assert set(answer["terms"]) == {"whitened", "nce"}
    assert playground.method.settings is before


def test_a_mistake_in_a_term_of_your_own_is_told(own_playground):
    """Prevents a widget that waits for ever for a term that raises."""

    @term
    def broken(self, outputs, step):
        if outputs.sentence.shape[-1] == 2:
            return outputs.sentence.square().mean()
        raise ValueError("nothing to divide by")

    playground, sent = own_playground(["broken"], broken=broken), []
    playground.send = sent.append
    points = {"sentence": torch.ones(2, 3, 3).tolist()}
    asked = {"do": "terms", "id": 1, "terms": ["broken"], "step": 0, "points": points}
    settings = playground.method.settings
    playground._hear(playground, asked, [])
    assert sent[0]["failed"]["id"] == 1
    assert "nothing to divide by" in sent[0]["error"]
    assert playground.method.settings is settings


def test_the_plain_figure_has_the_points_before_and_after(playground):
    """Prevents a saved notebook of other points, points that static() moves, and two panels whose
    rays cannot be compared: each goes from the origin to its point, in one range."""
    start = playground.points
    playground.descend(4)
    now = playground.points
    figure = playground.static()
    assert playground.points is now
    panels = {axis: [part for part in figure.data if part.xaxis == axis] for axis in ("x", "x2")}
    for points, lines in zip((start, now), panels.values(), strict=True):
        a, b = points["tower I"][:, 0].tolist()
        assert list(zip(lines[0].x, lines[0].y, strict=True))[:5:3] == [(0, 0), (0, 0)]
        assert list(zip(lines[0].x, lines[0].y, strict=True))[1:5:3] == [tuple(a), tuple(b)]
        assert lines[0].marker.size[:3] == (0, 10, 0)
    layout = figure.layout
    assert layout.xaxis.range == layout.yaxis.range == layout.xaxis2.range == layout.yaxis2.range
    curves = {part.name: part for part in figure.data}
    assert list(curves["nce"].y) == [row["nce"] for row in playground.history]
    assert "‖tower II‖" in curves


def test_no_later_cell_moves_the_playground_that_a_cell_shows():
    """Prevents a page whose first picture is where the last experiment ended."""
    notebook = json.loads((NOTEBOOKS / "11_loss_playground.ipynb").read_text())
    sources = ["".join(cell["source"]) for cell in notebook["cells"] if cell["cell_type"] == "code"]
    shown = [
        (name, n)
        for n, source in enumerate(sources)
        for name in re.findall(r"^(\w+) = widgets\.LossPlayground", source, re.MULTILINE)
    ]
    assert [name for name, _ in shown] == ["playground", "own_playground"]
    for name, n in shown:
        later = (node for source in sources[n + 1 :] for node in ast.walk(ast.parse(source)))
        assert not any(isinstance(node, ast.Name) and node.id == name for node in later)
