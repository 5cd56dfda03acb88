"""The losses that the browser computes are Python's: values, gradients, and a whole descent.

They run in the Node that playwright's package ships, without a browser.
"""

import itertools

import pytest
import torch
from torch.nn.functional import normalize

from cselab.evaluation import uniformity
from cselab.losses import modulus_ratio
from cselab.methods import StepContext, create, registered
from cselab.methods.terms import term
from cselab.workbook.widgets import LossPlayground
from cselab.workbook.widgets.descent import Descent, as_lists, random_points

OWNERS = ("simcse", "consert", "iscse", "tncse_single", "tncse", "jtcse")
"""Methods that have all ported terms."""
OTHER_NUMBERS = {
    "negative_weight": 0.4,
    "positive_scale": 0.9,
    "temperature": 0.7,
    "margin": 25.0,
    "artificial_rows": 0,  # others are drawn by the kernel
}


@pytest.fixture
def playgrounds(small_pretrained):
    """Of the methods that have ported terms."""
    configs = {name: registered(name).Config() for name in OWNERS}
    configs["jtcse"] = configs["jtcse"].changed({"caels": 1})
    folders = {name: [small_pretrained] * len(registered(name).tower_names) for name in OWNERS}
    return {
        name: LossPlayground(create(config, folders=folders[name]))
        for name, config in configs.items()
    }


def some_points(spaces, kind, seed):
    """Float64 points by space: random ones, or where a loss has a corner or a clamp."""
    size, spread = (3, 1.0) if kind == "space" else (2, {"near": 1e-3}.get(kind, 1.0))
    points = {name: x.double() for name, x in random_points(spaces, 4, size, seed).items()}
    if kind == "near":
        points = {name: 0.5 + spread * x for name, x in points.items()}
    if kind == "equal":
        points = {name: x[:1].expand(2, -1, -1).clone() for name, x in points.items()}
    return points


def variations(fields):
    """All choices of a term's hyperparameters, and two values of each number."""
    values = [x.get("enum") or {x["default"], OTHER_NUMBERS[x["name"]]} for x in fields]
    names = [field["name"] for field in fields]
    return [dict(zip(names, row, strict=True)) for row in itertools.product(*values)]


def as_cases(playground, names=()):
    """A case for each term (of `names`), variation, kind of points and temperature, with Python's
    answer."""
    for entry in playground.catalogue:
        if not entry["known"] or (names and entry["name"] not in names):
            continue
        for number, options in enumerate(variations(entry["fields"])):
            playground.terms = {entry["name"]: {"weight": 1, **options}}
            for kind, temperature in itertools.product(
                ("plane", "space", "near", "equal"), (0.05, 0.8)
            ):
                playground.temperature = temperature
                method, step = playground.method, number + 2
                context = StepContext.at(0, step)
                points = some_points(method.space_names, kind, seed=number)
                given = [x.requires_grad_() for x in points.values()]
                (value,) = method.compare(method.placed(given), context).values()
                gradients = torch.autograd.grad(value, given)
                yield {
                    "name": entry["known"],
                    "points": [x.tolist() for x in given],
                    "options": {**options, **entry["fixed"]},
                    "context": {"temperature": temperature, "step": step, "coin": context.coin},
                    "title": f"{entry['name']} {options} {kind} {temperature}",
                    "value": value.item(),
                    "gradients": [x.tolist() for x in gradients],
                }


def assert_equal(found, cases):
    for case, (value, gradients) in zip(cases, found, strict=True):
        assert value == pytest.approx(case["value"], rel=1e-6, abs=1e-6), case["title"]
        torch.testing.assert_close(
            torch.tensor(gradients, dtype=torch.float64),
            torch.tensor(case["gradients"], dtype=torch.float64),
            rtol=1e-6,
            atol=1e-6,
            msg=lambda text, title=case["title"]: f"{title}: {text}",
        )


LOSSES = """
const result = given.map((one) => {
  const { value, gradients } = lossOf(one.name, one.points, one.options, one.context);
  return [value, gradients];
});
"""


@term(script="align")
def align(self, outputs, step):
    a, b = normalize(outputs.sentence, dim=-1)
    return (a - b).square().sum(-1).mean() / (2 * self.settings.temperature)


@term(script="uniform")
def uniform(self, outputs, step):
    squares = torch.stack([torch.pdist(normalize(x, dim=-1)) for x in outputs.sentence]).square()
    return squares.mul(-0.5 / self.settings.temperature).exp().mean(-1).log().mean()


def test_each_ported_term_is_pythons(playgrounds, own_playground, run_js):
    """Prevents a browser that shows another loss than the one that is trained: values and
    gradients, in every variant, at clamps and corners too."""
    cases = [case for playground in playgrounds.values() for case in as_cases(playground)]
    names = ["align", "uniform"]
    cases += as_cases(own_playground(names, align=align, uniform=uniform), names)
    assert_equal(run_js("losses", LOSSES, cases), cases)
    assert {case["name"] for case in cases} == set(run_js("losses", "const result = PORTED;", None))


DESCENT = """
const { spaces, points, weights, options, catalogue, coins, sphere, rate } = given;
const state = {
  spaces,
  weights: () => weights,
  options: () => options,
  temperature: () => 0.1,
  coins: () => coins,
  sphere: () => sphere,
  names: catalogue.map((term) => term.name),
  term: (name) => catalogue.find((term) => term.name === name),
};
const run = new Run(state, null);
run.begin(points);
const wrong = [];
for (let n = 0; n < 50 && !wrong.at(-1); n++) wrong.push(await run.descend(rate));
const better = wrong.some(Boolean) ? await run.suggestion(rate) : null;
const result = { points: run.points, rows: run.rows, wrong, better };
"""


def descend_js(run_js, playground, points, rate, sphere):
    return run_js(
        "playground_run",
        DESCENT,
        {
            "spaces": list(points),
            "points": list(as_lists(points).values()),
            "weights": playground.weights,
            "options": playground.options,
            "catalogue": playground.catalogue,
            "coins": playground.coins,
            "sphere": sphere,
            "rate": rate,
        },
    )


@pytest.mark.parametrize("sphere", [False, True])
def test_a_descent_is_pythons(playgrounds, run_js, sphere):
    """Prevents steps that are not down the weighted sum, coins that are tossed anew, points that
    leave the sphere, and a history of other numbers than Python's."""
    playground = playgrounds["jtcse"]
    playground.terms = {"nce": 1, "icnce": 0.5, "ictm": 1, "dcl": 0.3}
    playground.temperature = 0.1
    points = some_points(playground.method.space_names, "space" if sphere else "plane", seed=1)
    method = playground.method
    descent = Descent(method, points, 0.01, sphere, seed=0)
    descent.descend(50)
    found = descend_js(run_js, playground, descent.trail[0], 0.01, sphere)
    assert not any(found["wrong"])
    for rows, expected in zip(found["points"], descent.points.values(), strict=True):
        torch.testing.assert_close(
            torch.tensor(rows, dtype=torch.float64), expected, rtol=1e-6, atol=1e-6
        )
    assert len(found["rows"]) == 51
    for row, expected in zip(found["rows"], descent.history, strict=True):
        assert row == pytest.approx(expected, rel=1e-5, abs=1e-5)  # geometry is float32 in Python


LATE_KERNEL = """
const asked = [];
const slope = (given) => (Array.isArray(given) ? given.map(slope) : 1);
const kernel = (names, points, step) =>
  new Promise((done) => {
    const answer = { own: { value: points[0][0][0][0], gradients: slope(points) } };
    asked.push({ step, answer: () => done(answer) });
  });
const state = {
  spaces: ["sentence"],
  weights: () => ({ own: 1 }),
  options: () => ({}),
  temperature: () => 0.1,
  coins: () => "1",
  sphere: () => false,
  names: ["own"],
  term: () => ({ known: "", fixed: {} }),
};
const run = new Run(state, kernel);
const answer = async (n) => (asked[n]?.answer(), await new Promise((done) => setTimeout(done, 5)));
run.begin([[[[1, 2], [0, 1]], [[2, 1], [1, 1]]]]);
run.refresh();
await answer(0);
"""


def test_a_late_answer_does_not_undo_a_step(run_js):
    """Prevents a step that falls back, [0, 0] in the place of [0, 1], where a weight was changed
    while the kernel computed the step."""
    script = """
      const step = run.descend(0.1);
      run.refresh();
      for (let n = 1; n < 9; n++) await answer(n);
      await step;
      const next = run.descend(0.1);
      for (let n = asked.length - 1; n < 20; n++) await answer(n);
      await next;
      const steps = run.rows.map((row) => row.step);
      const isOfItsPoints = run.found.own.value === run.points[0][0][0][0];
      const result = [steps, isOfItsPoints];
    """
    steps, of_its_points = run_js("playground_run", LATE_KERNEL + script, None)
    assert steps == list(range(len(steps)))
    assert len(steps) > 1
    assert of_its_points


def test_a_drag_asks_the_kernel_for_its_newest_points_alone(run_js):
    """Prevents a queue of requests whose answers are thrown away, and that lags behind the drag."""
    script = """
      for (let x = 1; x <= 50; x++) {
        run.move(0, 0, 0, [x, 0]);
        run.refresh();
      }
      const during = asked.length - 1;
      for (let n = 1; n < 60; n++) await answer(n);
      const result = [during, asked.length - 1, run.found.own.value];
    """
    assert run_js("playground_run", LATE_KERNEL + script, None) == [1, 2, 50]


def test_a_step_that_is_too_long_is_stopped_with_one_that_would_do(playgrounds, run_js):
    """Prevents points that fly away without a word, and advice that does not help."""
    playground = playgrounds["jtcse"]
    playground.terms, playground.temperature = {"nce": 1, "rank": 1}, 0.1
    points = some_points(playground.method.space_names, "space", seed=1)
    before = Descent(playground.method, points, 0.01, True, seed=0)
    before.descend(100)
    found = descend_js(run_js, playground, before.points, 3.0, sphere=True)
    assert "rising" in found["wrong"]
    points = dict(zip(points, map(torch.tensor, found["points"]), strict=True))
    again = descend_js(run_js, playground, points, found["better"], sphere=True)
    assert not any(again["wrong"])
    first, last = (sum(again["rows"][n][term] for term in ("nce", "rank")) for n in (0, 20))
    assert last < first


def test_the_pairs_on_the_modulus_surface_are_the_losss(run_js):
    """Prevents marks at another place of the surface than the loss's own ratio."""
    points = some_points(("tower I", "tower II"), "plane", seed=2)
    script = "const result = modulusPairs(given).map(([k, t]) => surfaceAt(k, t));"
    found = run_js("playground_charts", script, list(as_lists(points).values()))
    expected = modulus_ratio(points["tower I"][0], points["tower II"][1])
    assert found == pytest.approx(expected.tolist(), rel=1e-9)


@term
def spread(self, outputs, step):
    """Views far apart,
    on the sphere.

    `log E exp(−2 d²)`, over
    pairs

    More."""
    return sum(uniformity(view) for view in outputs.sentence) / 2


@term
def nce(self, outputs, step):
    return outputs.sentence.square().mean()


def test_a_term_of_your_own_names_its_script(own_playground):
    """Prevents a page whose chapter on alignment and uniformity does not move, and a script of the
    library for a term, or for vectors, of your own."""

    def catalogue(**more):
        parts = {"align": align, "spread": spread, "nce": nce, **more}
        playground = own_playground(["align", "spread"], **parts)
        return {entry["name"]: entry for entry in playground.catalogue}

    own = catalogue()
    known = {name: own[name]["known"] for name in ("align", "spread", "nce", "dcl")}
    assert known == {"align": "align", "spread": "", "nce": "", "dcl": "dcl"}
    assert own["spread"]["about"] == "Views far apart, on the sphere."
    assert own["spread"]["formula"] == "log E exp(−2 d²), over pairs"
    turned = catalogue(spaces=lambda self, outputs, step: outputs.map(lambda x: x.flip(0)))
    assert {entry["known"] for entry in turned.values()} == {""}
