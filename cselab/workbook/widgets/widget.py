"""Base class of the widgets: a script draws them, and a plain figure where none runs."""

import json
import math
import os
from abc import abstractmethod
from typing import Any, ClassVar

import anywidget
import ipywidgets
import plotly.graph_objects as go
import traitlets
from IPython.display import HTML, DisplayHandle, display

from cselab.errors import SettingsError, suggest
from cselab.workbook.browser import PLOTLY_MIME, STYLE, WIDGET_MIME, bundle

FALLBACK = """<span class="cselab-fallback"></span><style>
.jp-OutputArea:has(.cselab) > .jp-OutputArea-child:has(.cselab-fallback) + .jp-OutputArea-child,
.jp-OutputArea:has(.cselab-fallback) > .jp-OutputArea-child
  > .jp-OutputArea-output.jupyter-widgets:not(:has(*)),
.jp-OutputArea-child:has(.cselab-fallback) { display: none; }
</style>"""
"""Hides the plain figure, the next output, where the widget is drawn; and, where no kernel runs,
the line "model not found" that stands in its place."""


class Widget(anywidget.AnyWidget):
    """A widget that a browser script draws from its synchronised traits, which are its controls.

    In JupyterLab the browser asks the kernel only for what it lacks. The page of a headless run
    mounts the same script with the saved state. A saved notebook that is opened again runs no
    script, and shows the plain figure of `static()`.

    Attributes:
        script: Name of the module in `cselab.workbook.browser`.

    Examples:
        >>> from transformers import BertConfig
        >>> from cselab.workbook.widgets import CaelExplorer, Widget
        >>> explorer = CaelExplorer(BertConfig(num_hidden_layers=6))
        >>> isinstance(explorer, Widget), explorer.script, type(explorer.static()).__name__
        (True, 'cael', 'Figure')
    """

    _css = STYLE
    script: ClassVar[str]
    kernel = traitlets.Bool(True).tag(sync=True)  # false in a page

    def __init__(self, **traits: Any):
        super().__init__(**traits)
        self.on_msg(self._hear)

    def __init_subclass__(cls, **options) -> None:
        if "script" in vars(cls):  # anywidget makes a subclass of an instance's own
            cls._esm = bundle(cls.script)
        super().__init_subclass__(**options)

    @abstractmethod
    def static(self) -> go.Figure:
        """Return a plain figure of the present state, such as one of `plain_figure`."""

    def answer(self, question: dict[str, Any]) -> None:
        """Give the browser what it asks for, by a trait or by `send`."""

    def _hear(self, _widget: Any, question: dict[str, Any], _buffers: Any) -> None:
        """Answer a question of the browser, or say why there is no answer: nobody reads a log."""
        try:
            self.answer(question)
        except (Exception, KeyboardInterrupt) as error:
            self.send({"failed": question, "error": f"{type(error).__name__}: {error}"})

    def page_state(self) -> dict[str, Any]:
        """Return the state that a page without a kernel starts from, as JSON."""
        hidden = ipywidgets.DOMWidget.class_trait_names(sync=True)
        names = [name for name in self.keys if name not in hidden and not name.startswith("_")]
        return {**self.get_state(names), "kernel": False}

    def figure_output(self) -> dict[str, Any]:
        """Return the plain figure as the data of an output."""
        text = f"{type(self).__name__}, interactive in JupyterLab and in the page of a run"
        return {PLOTLY_MIME: json.loads(self.static().to_json()), "text/plain": text}

    def saved(self) -> dict[str, Any]:
        """Return what a page needs to draw the widget without a kernel."""
        return {"script": self.script, "state": self.page_state()}

    def _ipython_display_(self) -> None:
        if "CSELAB_RUN_DIR" in os.environ:
            display({**self.figure_output(), WIDGET_MIME: self.saved()}, raw=True)
        else:
            self.display_with_figure()

    def display_with_figure(self) -> DisplayHandle | None:
        """Display the widget after its plain figure, whose handle it returns."""
        data, metadata = self._repr_mimebundle_()
        display(HTML(FALLBACK))
        figure = display(self.figure_output(), raw=True, display_id=True)
        display(data, metadata=metadata, raw=True)
        return figure


def rounded(x: float, digits: int = 4) -> float | None:
    """Round to significant digits, for the browser; None where not finite, as JSON has no NaN."""
    return float(f"{x:.{digits}g}") if math.isfinite(x) else None


def one_of(name: str, value: str, valid: list[str]) -> str:
    """Return `value`, or raise a SettingsError with the nearest of the valid ones."""
    if value not in valid:
        raise SettingsError(f"unknown {name} {value!r}; {suggest(value, valid)}")
    return value
