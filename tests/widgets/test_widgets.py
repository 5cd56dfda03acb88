"""What every widget does: a live figure that follows its controls, a static one where there is no
kernel."""

import json

import plotly.graph_objects as go
import pytest
from plotly.utils import PlotlyJSONEncoder

from cselab.evaluation import compare_pairs
from cselab.widgets import (
    AttentionInspector,
    CaelExplorer,
    FigureApp,
    NormExplorer,
    RunComparer,
)

SENTENCE, OTHER = "a man is playing guitar .", "the dog was sleeping under the table"


def test_runs_side_by_side(runs):
    """Prevents a difference of the wrong sign, and a run that is opened though nobody picked it."""
    openers, made, opened = runs
    comparer = RunComparer(openers)
    figure = comparer.static()
    (marks,) = [part for part in figure.data if getattr(part, "mode", "") == "markers"]
    tasks = [made[name].report.tasks["Synthetic"] for name in ("other", "base")]
    expected = compare_pairs(*tasks, resamples=500)
    assert list(marks.y) == pytest.approx([expected.difference])
    assert marks.y[0] + marks.error_y.array[0] == pytest.approx(expected.high)
    assert marks.y[0] - marks.error_y.arrayminus[0] == pytest.approx(expected.low)
    curves = {
        part.name: list(part.y)
        for part in figure.data
        if getattr(part, "mode", "") == "lines+markers"
    }
    assert curves == {"base": [10.0, 20.0], "other": [10.0, 30.0]}
    assert set(opened) == {"base", "other"}


def every_widget(encoders, playground, runs):
    return [
        (AttentionInspector(encoders, SENTENCE), "layer", 2),
        (NormExplorer(encoders, [SENTENCE, OTHER, "a cat"]), "removed", 3),
        (CaelExplorer(encoders["one"].backbone.config), "layer_1", True),
        (playground, "shape", "space"),
        (RunComparer(runs[0]), "picked", ("other",)),
    ]


def test_the_live_figure_follows_its_controls(encoders, playground, runs):
    """Prevents a widget that stays as it was drawn first, and a live figure that differs from the
    static one."""
    for widget, name, value in every_widget(encoders, playground, runs):
        widget.widget()
        before = widget.live.to_json()
        widget.controls[name].value = value
        assert widget.live.to_json() != before, type(widget)
        live, static = go.Figure(widget.live).to_plotly_json(), widget.static().to_plotly_json()
        for part in (*live["data"], *static["data"]):
            part.pop("uid", None)
        assert json.dumps(live["data"], cls=PlotlyJSONEncoder, sort_keys=True) == json.dumps(
            static["data"], cls=PlotlyJSONEncoder, sort_keys=True
        ), type(widget)
        assert live["layout"].keys() == static["layout"].keys(), type(widget)


def test_a_headless_run_shows_the_static_figure(encoders, playground, runs, monkeypatch):
    """Prevents an exported page with nothing where a widget was."""
    shown = []
    monkeypatch.setattr("cselab.widgets.widget.display", shown.append)
    for widget, _, _ in every_widget(encoders, playground, runs):
        monkeypatch.setenv("CSELAB_RUN_DIR", "somewhere")
        widget._ipython_display_()
        monkeypatch.delenv("CSELAB_RUN_DIR")
        widget._ipython_display_()
        static, live = shown[-2:]
        assert isinstance(static, go.Figure), type(widget)
        assert not isinstance(live, go.Figure)


def test_controls_have_labels(encoders, playground, runs):
    """Prevents a slider whose purpose nobody can read, aloud or on the screen."""
    for widget, _, _ in every_widget(encoders, playground, runs):
        assert isinstance(widget, FigureApp)
        assert all(control.description for control in widget.controls.values()), type(widget)
