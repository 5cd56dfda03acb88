"""Base class of the widgets: the browser draws them, and a static figure stands in for them."""

import json
import os
from abc import abstractmethod
from html import escape
from typing import Any, ClassVar

import anywidget
import ipywidgets
import plotly.graph_objects as go
import traitlets
from IPython.display import HTML, display

from cselab.browser import STYLE, WIDGET_MIME, bundle
from cselab.errors import SettingsError, suggest

PLOTLY_MIME = "application/vnd.plotly.v1+json"
FALLBACK = """<span class="cselab-fallback"></span><style>
.jp-OutputArea:has(.cselab) > .jp-OutputArea-child:has(.cselab-fallback) + .jp-OutputArea-child,
.jp-OutputArea:has(.cselab-fallback) > .jp-OutputArea-child
  > .jp-OutputArea-output.jupyter-widgets:not(:has(*)),
.jp-OutputArea-child:has(.cselab-fallback) { display: none; }
</style>"""
"""Hides the static figure, the next output, where the widget is drawn; and, where no kernel runs,
the line "model not found" that stands in its place."""


class Widget(anywidget.AnyWidget):
    """A widget that `cselab/browser` draws from its synchronised traits, which are its controls.

    Set a control from Python as an attribute: `inspector.layer = 2`. In JupyterLab the browser
    draws it and asks the kernel only for what it lacks. A headless run keeps its state and
    `static()`: the run's page moves without a kernel, the executed notebook shows the figure, and
    so does a saved notebook that is opened again. Plotly reads HTML in labels: names and text of a
    user need `escape_label` in `static`.

    script: name of the module in `cselab.browser`.
    """

    _css = STYLE
    script: ClassVar[str]
    kernel = traitlets.Bool(True).tag(sync=True)
    """Whether a kernel answers; false in a page."""

    def __init_subclass__(cls, **options) -> None:
        if "script" in vars(cls):  # anywidget makes a subclass of an instance's own
            cls._esm = bundle(cls.script)
        super().__init_subclass__(**options)

    @abstractmethod
    def static(self) -> go.Figure:
        """The figure of the present state, where no script runs."""

    def page_state(self) -> dict[str, Any]:
        """The state that a page without a kernel starts from, as JSON."""
        hidden = ipywidgets.DOMWidget().keys
        names = [name for name in self.keys if name not in hidden and not name.startswith("_")]
        return {**self.get_state(names), "kernel": False}

    def figure_output(self) -> dict[str, Any]:
        """The static figure as the data of an output."""
        text = f"{type(self).__name__}, interactive in JupyterLab and in the page of a run"
        return {PLOTLY_MIME: json.loads(self.static().to_json()), "text/plain": text}

    def _ipython_display_(self) -> None:
        if "CSELAB_RUN_DIR" in os.environ:
            state = {"script": self.script, "state": self.page_state()}
            display({**self.figure_output(), WIDGET_MIME: state}, raw=True)
            return
        data, metadata = self._repr_mimebundle_()
        display(HTML(FALLBACK))
        display(self.figure_output(), raw=True)
        display(data, metadata=metadata, raw=True)


def escape_label(text: str) -> str:
    """Escape a user's text for a plotly label, so that tags are shown as text."""
    return escape(text, quote=False)


def one_of(name: str, value: str, valid: list[str]) -> str:
    """`value`. Raises SettingsError, with the nearest valid value, unless it is one of `valid`."""
    if value not in valid:
        raise SettingsError(f"unknown {name} {value!r}; {suggest(value, valid)}")
    return value
