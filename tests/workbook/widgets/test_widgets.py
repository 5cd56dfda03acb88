"""What every widget shows: the browser's drawing, and a static figure where no script runs."""

import inspect
import json

import pytest
from anywidget import AnyWidget

from cselab.workbook.browser import PLOTLY_MIME, WIDGET_MIME, bundle
from cselab.workbook.widgets import AttentionInspector, CaelExplorer, NormExplorer

SENTENCE, OTHER = "a man is playing guitar .", "the dog was sleeping under the table"


@pytest.fixture
def widgets(encoders, playground):
    return [
        AttentionInspector(encoders, SENTENCE),
        NormExplorer(encoders, [SENTENCE, OTHER, "a cat"]),
        CaelExplorer(encoders["one"].backbone.config),
        playground,
    ]


@pytest.fixture
def shown(monkeypatch):
    """The outputs of a cell: data by type."""
    outputs = []

    def display(*things, raw=False, **_):
        outputs.extend(things if raw else [{"text/html": thing.data} for thing in things])

    monkeypatch.setattr("cselab.workbook.widgets.widget.display", display)
    return outputs


def test_a_headless_run_keeps_the_state_and_a_notebook_the_plain_figure(
    widgets, shown, monkeypatch
):
    """Prevents an exported page with nothing where a widget was, or one that waits for a kernel;
    and a saved notebook that shows "model not found"."""
    for widget in widgets:
        widget._ipython_display_()
        style, figure, live = shown
        assert "cselab-fallback" in style["text/html"]
        assert figure[PLOTLY_MIME]["data"]
        assert live["application/vnd.jupyter.widget-view+json"]["model_id"] == widget.model_id
        shown.clear()
        with monkeypatch.context() as patch:
            patch.setenv("CSELAB_RUN_DIR", "somewhere")
            widget._ipython_display_()
        (output,) = shown
        shown.clear()
        assert output[PLOTLY_MIME]["data"], type(widget)
        kept = json.loads(json.dumps(output[WIDGET_MIME]))
        assert kept["script"] == widget.script
        assert kept["state"]["kernel"] is False
        assert not [name for name in kept["state"] if name.startswith("_")]


def test_no_method_replaces_one_of_ipywidgets(widgets):
    """Prevents a method with the name of one that ipywidgets calls, such as `_compare`: repr
    failed."""
    for widget in widgets:
        own = {name for name, part in vars(type(widget)).items() if inspect.isfunction(part)}
        assert own & set(dir(AnyWidget)) <= {"__init__"}


def test_a_bundle_is_one_module(widgets):
    """Prevents an import that the browser would look for beside the notebook."""
    for widget in widgets:
        lines = bundle(widget.script).splitlines()
        assert not [line for line in lines if line.startswith("import ")]
        assert [line for line in lines if line.startswith("export ")] == [
            "export default { render };"
        ]
