"""The live view of a training."""

import json

import pytest

from cselab.errors import Interrupted
from cselab.experiments import Lab
from cselab.widgets import LiveTraining
from cselab.widgets.live import MOST_POINTS, Training


class FakeLab(Lab):
    """What the widget reads of a lab, without data."""

    dev_name = "Synthetic dev"

    def __init__(self):
        self.workspace = type("Workspace", (), {"listener": None})()


class Front:
    """A front-end: what is displayed, and the data that it puts together from the messages."""

    def __init__(self, monkeypatch, live):
        self.shown, self.data, self.bytes, self.messages, self.final = [], {}, 0, 0, None
        monkeypatch.setattr("cselab.widgets.live.display", self.display)
        monkeypatch.setattr(live, "send", self.hear)

    def display(self, *objects, **options):
        self.shown += objects
        return self

    def update(self, output, **options):
        self.final = output["application/vnd.plotly.v1+json"]

    def hear(self, news):
        self.bytes += len(json.dumps(news))
        self.messages += 1
        for name, parts in news.items():
            curves = self.data.setdefault(name, {"losses": [], "evaluations": []})
            for curve, points in curves.items():
                points[parts[curve]["start"] :] = parts[curve]["points"]


def row(step, dev=60.0):
    return {"step": step, "dev": dev, "uniformity": -2.0 - step, "alignment": 0.1}


@pytest.fixture
def live():
    return LiveTraining(FakeLab())


@pytest.fixture
def front(monkeypatch, live):
    monkeypatch.setattr("cselab.widgets.live.SECONDS_BETWEEN_UPDATES", 0.0)
    return Front(monkeypatch, live)


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


def test_the_browser_hears_what_is_new(live, front):
    """Prevents curves with holes or of another training, and a long training that sends all of its
    points again and again."""
    with live:
        train(live, 4000)
    losses = front.data["tower I"]["losses"]
    assert [step for step, _ in losses] == list(range(8, 4001, 8))
    assert losses == live.data["tower I"]["losses"]["points"]
    assert front.data["tower I"]["evaluations"] == live.data["tower I"]["evaluations"]["points"]
    assert len(losses) <= MOST_POINTS
    assert front.bytes / front.messages < 400


def test_the_browser_puts_the_news_together(live, front, monkeypatch, run_js):
    """Prevents a script that loses points where Python has thinned them."""
    sent = []
    monkeypatch.setattr(live, "send", sent.append)
    with live:
        train(live, 1300)
    script = "const result = given.reduce(merged, {});"
    merged = run_js("live", script, sent)["tower I"]
    assert merged["terms"] == ["nce"]
    for curve in ("losses", "evaluations"):
        assert merged[curve]["points"] == live.data["tower I"][curve]["points"]


def test_the_lab_has_it_as_its_listener_only_inside_the_block(live):
    """Prevents a later training from being drawn into an old figure."""

    def fail():
        with live:
            assert live.lab.workspace.listener is live
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert live.lab.workspace.listener is None


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
    monkeypatch.setattr("cselab.widgets.widget.display", front.display)
    with live:
        train(live, 2, every=1)
        assert front.shown == []
    (bundle,) = front.shown
    state = bundle["application/vnd.cselab.widget+json"]["state"]
    assert [step for step, *_ in state["data"]["tower I"]["evaluations"]["points"]] == [0, 1, 2]
    assert not state["running"]


def test_progress_says_how_long_it_will_take(monkeypatch):
    """Prevents a speed that counts the steps before a training was resumed."""
    clock = iter((0.0, 0.0, 10.0))
    monkeypatch.setattr("cselab.widgets.live.monotonic", lambda: next(clock))
    training = Training(400)
    assert training.progress(100) == "step 100 of 400"
    assert training.progress(120) == "step 120 of 400, 2 steps/s, 2 min left"


def test_an_interrupt_says_where_and_how_it_goes_on(live, front):
    """Prevents a view that calls an interrupted training finished."""
    line = "tower I: interrupted at step 2 of 9; run it again to start again"

    def interrupted():
        with live:
            train(live, 2)
            raise Interrupted(line)

    with pytest.raises(Interrupted):
        interrupted()
    assert live.status == "tower I: interrupted at step 2 of 9; run the cell again to go on"
    assert not live.running
