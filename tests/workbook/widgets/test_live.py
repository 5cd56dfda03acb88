"""The live view of a training."""

from types import SimpleNamespace

import pytest
from IPython.display import DisplayHandle

from cselab.errors import Interrupted
from cselab.experiments import Lab
from cselab.workbook.widgets import LiveTraining
from cselab.workbook.widgets.live import MOST_POINTS, Training


class FakeLab(Lab):
    """What the widget reads of a lab, without data."""

    def __init__(self):
        self.cache = SimpleNamespace(listener=None)
        self.data = SimpleNamespace(dev_name="Synthetic dev")


class Front(DisplayHandle):
    """A front-end: the outputs that are displayed, and the last update of the figure."""

    def __init__(self, monkeypatch):
        super().__init__()
        self.shown, self.final = [], None
        monkeypatch.setattr("cselab.workbook.widgets.widget.display", self.display)

    def display(self, *objects, **options):
        self.shown += objects
        return self

    def update(self, output, **options):
        self.final = output["application/vnd.plotly.v1+json"]


def row(step, dev=60.0):
    return {"step": step, "dev": dev, "uniformity": -2.0 - step, "alignment": 0.1}


@pytest.fixture
def live():
    return LiveTraining(FakeLab())


@pytest.fixture
def front(monkeypatch):
    monkeypatch.setattr("cselab.workbook.widgets.live.SECONDS_BETWEEN_UPDATES", 0.0)
    return Front(monkeypatch)


def train(live, steps, *, name="tower I", every=100):
    for step in range(steps + 1):
        if step:
            live.step(name, step, {"nce": 1.0 / step})
        if step % every == 0:
            live.evaluated(name, row(step, 60.0 + step))


def test_the_figure_has_each_step_and_each_evaluation(live, front):
    """Prevents a curve of the evaluations alone, one training drawn into another's, and a training
    of the same name that goes on where another ended."""
    with live:
        train(live, 5)
        for name in ("tower I", "tower II"):
            train(live, 2, name=name, every=2)
    traces = live.static().data
    losses = [trace for trace in traces if trace.name == "tower II: nce"]
    assert [list(trace.y) for trace in losses] == [[1.0, 0.5]]
    dev = [trace for trace in traces if trace.name == "tower I" and trace.xaxis == "x2"]
    assert [(list(t.x), list(t.y)) for t in dev] == [([0, 2], [60.0, 62.0])]


def test_the_browser_gets_each_new_point_and_a_sample_of_a_long_training(live, front):
    """Prevents curves with holes or of a former training of the same name, updates that traitlets
    takes for no change, and a page of thousands of points."""
    heard = []
    live.observe(lambda change: heard.append(change.new["tower I"]), "data")
    with live:
        train(live, 4, every=4)
        assert [len(one["losses"]) for one in heard] == [0, 1, 2, 3, 4, 4]
        assert [len(one["evaluations"]) for one in heard] == [1, 1, 1, 1, 1, 2]
        train(live, 4000)
    losses = live.data["tower I"]["losses"]
    assert [step for step, _ in losses] == list(range(8, 4001, 8))
    assert len(losses) <= MOST_POINTS
    assert [step for step, *_ in live.data["tower I"]["evaluations"]] == list(range(0, 4001, 100))


def test_it_appears_with_the_training_and_leaves_its_figure(live, front):
    """Prevents an empty view above a training that was found, a saved notebook without the curves,
    and a stop button of nothing."""
    with live:
        assert front.shown == []
        train(live, 2, every=1)
        assert live.running
        assert len(front.shown) == 3  # mark, figure and widget, once
    assert not live.running
    assert live.status == "finished"
    assert [list(t["y"]) for t in front.final["data"] if t["xaxis"] == "x2"] == [[60.0, 61.0, 62.0]]


def test_a_headless_run_shows_the_final_state(live, front, monkeypatch):
    """Prevents a page of the first step, and one that is filled with views of each step."""
    monkeypatch.setenv("CSELAB_RUN_DIR", "somewhere")
    with live:
        train(live, 2, every=1)
        assert front.shown == []
    (bundle,) = front.shown
    state = bundle["application/vnd.cselab.widget+json"]["state"]
    assert [step for step, *_ in state["data"]["tower I"]["evaluations"]] == [0, 1, 2]
    assert not state["running"]


def test_progress_says_how_long_it_will_take(monkeypatch):
    """Prevents a speed that counts the steps before a training was resumed."""
    clock = iter((0.0, 0.0, 10.0))
    monkeypatch.setattr("cselab.workbook.widgets.live.monotonic", lambda: next(clock))
    training = Training(400)
    assert training.progress(100) == "step 100 of 400"
    assert training.progress(120) == "step 120 of 400, 2 steps/s, 2:20 left"


def test_an_interrupt_says_where_and_how_it_goes_on(live, front):
    """Prevents a view that calls an interrupted training finished, and one that hears of trainings
    after its block."""
    line = "tower I: interrupted at step 2 of 9; run it again to start again"

    def interrupted():
        with live:
            assert live.lab.cache.listener is live
            train(live, 2)
            raise Interrupted(line)

    with pytest.raises(Interrupted):
        interrupted()
    assert live.status == "tower I: interrupted at step 2 of 9; run the cell again to go on"
    assert not live.running
    assert live.lab.cache.listener is None


def test_the_eighth_training_is_drawn_with_other_dashes(live, front, run_js):
    """Prevents a training that is left out for want of a colour, and one that looks like the
    first; and a name with a "<" that plotly reads as HTML."""
    live.dev_name = "dev <b>"
    with live:
        for n in range(9):
            live.evaluated(f"tower {n}", row(0))
            live.step(f"tower {n}", 1, {"nce": 1.0, "kl <i>": 2.0})
    figure = live.static()
    looks = {t.name: (t.line.color, t.line.dash) for t in figure.data if t.xaxis == "x"}
    assert len(looks) == len(set(looks.values())) == 18
    assert "<i>" not in str(list(looks))
    assert "dev &lt;b&gt;" in [note.text for note in figure.layout.annotations]
    script = "const result = listed(given).flatMap((t) => t.dashes.map((d) => [t.colour, d]));"
    assert len(set(map(tuple, run_js("live", script, live.data)))) == 18


@pytest.fixture
def drawn(make_desk, front, live):
    """A live view in a browser, of a training that has begun."""
    live.kernel_id = "some-kernel"
    live.__enter__()
    train(live, 3, every=2)
    return make_desk(live)


def test_only_charts_with_new_points_are_drawn_again(live, drawn):
    """Prevents a fold, a focus and a tooltip of the dev scores that are lost at every step."""
    mark = "n => document.querySelectorAll('svg[role=img]')[n].marked = true"
    marked = "n => document.querySelectorAll('svg[role=img]')[n].marked === true"
    for n in range(3):
        drawn.page.evaluate(mark, n)
    drawn.python(lambda: live.step("tower I", 4, {"nce": 0.2}))
    assert [drawn.page.evaluate(marked, n) for n in range(3)] == [False, True, True]
    drawn.python(lambda: live.evaluated("tower I", row(6)))
    assert [drawn.page.evaluate(marked, n) for n in range(3)] == [False, False, False]


def test_only_begin_and_end_are_read_aloud(live, drawn):
    """Prevents a screen reader that speaks at every step."""
    spoken = drawn.root.get_by_role("status")
    assert spoken.all_inner_texts() == ["training"]
    assert "tower I: " in drawn.root.inner_text()
    drawn.python(lambda: live.__exit__(None, None, None))
    assert spoken.all_inner_texts() == ["finished"]
    assert "tower I: " not in drawn.root.locator(".bar").inner_text()


def test_a_stop_that_nobody_hears_says_what_to_do(live, drawn):
    """Prevents a button that does nothing where no server answers, and a word about it that the
    next step wipes away."""
    drawn.root.get_by_role("button", name="stop").click()
    drawn.page.wait_for_timeout(200)
    drawn.python(lambda: live.step("tower I", 4, {"nce": 0.2}))
    assert "to stop, use the ■ of the toolbar" in drawn.root.inner_text()
