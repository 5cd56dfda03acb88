"""Base class of the widgets: the browser draws them, and a static figure stands in for them."""

import json
import math
import os
from abc import abstractmethod
from html import escape
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
"""Hides the static figure, the next output, where the widget is drawn; and, where no kernel runs,
the line "model not found" that stands in its place."""


class Widget(anywidget.AnyWidget):
    """A widget that a browser script draws from its synchronised traits, which are its controls.

    Set a control from Python as an attribute: `inspector.layer = 2`. In JupyterLab the browser
    draws it and asks the kernel only for what it lacks. A headless run keeps its state and
    `static()`: the run's page moves without a kernel, the executed notebook shows the figure, and
    so does a saved notebook that is opened again. Plotly reads HTML in labels: names and text of a
    user need `escape_label` in `static`.

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
    kernel = traitlets.Bool(True).tag(sync=True)
    """Whether a kernel answers; false in a page."""

    def __init__(self, **traits: Any):
        super().__init__(**traits)
        self.on_msg(self._hear)

    def __init_subclass__(cls, **options) -> None:
        if "script" in vars(cls):  # anywidget makes a subclass of an instance's own
            cls._esm = bundle(cls.script)
        super().__init_subclass__(**options)

    @abstractmethod
    def static(self) -> go.Figure:
        """The figure of the present state, where no script runs."""

    def answer(self, question: dict[str, Any]) -> None:
        """Give the browser what it asks for, by a trait or by `send`.

        Args:
            question: What the browser sent.
        """

    def _hear(self, _widget: Any, question: dict[str, Any], _buffers: Any) -> None:
        """Answer a question of the browser, or say why there is no answer: nobody reads a log."""
        try:
            self.answer(question)
        except (Exception, KeyboardInterrupt) as error:
            self.send({"failed": question, "error": f"{type(error).__name__}: {error}"})

    def page_state(self) -> dict[str, Any]:
        """The state that a page without a kernel starts from, as JSON."""
        hidden = ipywidgets.DOMWidget.class_trait_names(sync=True)
        names = [name for name in self.keys if name not in hidden and not name.startswith("_")]
        return {**self.get_state(names), "kernel": False}

    def figure_output(self) -> dict[str, Any]:
        """The static figure as the data of an output."""
        text = f"{type(self).__name__}, interactive in JupyterLab and in the page of a run"
        return {PLOTLY_MIME: json.loads(self.static().to_json()), "text/plain": text}

    def saved(self) -> dict[str, Any]:
        """What a page needs to draw the widget without a kernel."""
        return {"script": self.script, "state": self.page_state()}

    def _ipython_display_(self) -> None:
        if "CSELAB_RUN_DIR" in os.environ:
            display({**self.figure_output(), WIDGET_MIME: self.saved()}, raw=True)
        else:
            self.display_with_figure()

    def display_with_figure(self) -> DisplayHandle | None:
        """Display the widget, and before it the figure that a saved notebook falls back on.

        Returns:
            The figure's handle; None where nothing displays.
        """
        data, metadata = self._repr_mimebundle_()
        display(HTML(FALLBACK))
        figure = display(self.figure_output(), raw=True, display_id=True)
        display(data, metadata=metadata, raw=True)
        return figure


def escape_label(text: str) -> str:
    """Escape a user's text for a plotly label, so that tags are shown as text."""
    return escape(text, quote=False)


def rounded(x: float, digits: int = 4) -> float | None:
    """`x` with so many significant digits, for the browser.

    None where it is not finite: JSON has no such number.

    Args:
        x: A number.
        digits: Significant ones.
    """
    return float(f"{x:.{digits}g}") if math.isfinite(x) else None


def one_of(name: str, value: str, valid: list[str]) -> str:
    """`value`, if it is one of `valid`.

    Args:
        name: What it is, for the message.
        value: The value to check.
        valid: The values that there are.

    Raises:
        SettingsError: With the nearest valid value, for another one.
    """
    if value not in valid:
        raise SettingsError(f"unknown {name} {value!r}; {suggest(value, valid)}")
    return value
