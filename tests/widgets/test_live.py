"""The live figure of a training."""

import pytest

from cselab.experiments import Lab
from cselab.widgets import LiveTraining
from cselab.widgets.live import InterruptButton


class FakeLab(Lab):
    """What the widget reads of a lab, without data."""

    dev_name = "Synthetic dev"

    def __init__(self):
        self.workspace = type("Workspace", (), {"listener": None})()


def row(step, dev):
    return {"step": step, "dev": dev, "uniformity": -2.0 - step, "alignment": 0.1}


@pytest.fixture
def live(monkeypatch):
    monkeypatch.setenv("CSELAB_RUN_DIR", "somewhere")  # headless
    return LiveTraining(FakeLab())


def test_the_figure_has_each_step_and_each_evaluation(live):
    """Prevents a curve of the evaluations alone, and one training drawn into another's."""
    with live:
        for name in ("tower I", "tower II"):
            live.evaluated(name, row(0, 60.0))
            for step in (1, 2):
                live.step(name, step, {"nce": 1.0 / step})
            live.evaluated(name, row(2, 61.0))
    traces = live.figure().data
    losses = [trace for trace in traces if trace.name == "tower II: nce"]
    assert [list(trace.y) for trace in losses] == [[1.0, 0.5]]
    dev = [trace for trace in traces if trace.name == "tower I" and trace.xaxis == "x2"]
    assert [(list(t.x), list(t.y)) for t in dev] == [([0, 2], [60.0, 61.0])]


def test_the_lab_has_it_as_its_listener_only_inside_the_block(live):
    """Prevents a later training from being drawn into an old figure."""

    def fail():
        with live:
            assert live.lab.workspace.listener is live
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert live.lab.workspace.listener is None


def test_in_jupyterlab_it_appears_with_the_training_and_leaves_its_figure(live, monkeypatch):
    """Prevents an empty figure above a training that was found, and a stop button of nothing."""
    monkeypatch.delenv("CSELAB_RUN_DIR")
    monkeypatch.setattr("cselab.widgets.live.get_connection_file", lambda: "kernel-1.json")
    shown = []
    monkeypatch.setattr("cselab.widgets.live.display", shown.append)
    with live:
        assert shown == []
        for step in (0, 1):
            live.evaluated("tower I", row(step, 60.0))
        (box,) = shown
        button, figure = box.children
        assert isinstance(button, InterruptButton)
    assert box.children == (figure,)
    assert [list(t.y) for t in live.live.data if t.xaxis == "x2"] == [[60.0, 60.0]]
