"""Base class of the widgets: named controls, and a figure of their values."""

import os
from abc import ABC, abstractmethod
from html import escape
from typing import Any

import ipywidgets as widgets
import plotly.graph_objects as go
from IPython.display import display

LABEL = {"description_width": "initial"}
"""Style of a control whose description is a phrase."""


class FigureApp(ABC):
    """A widget that draws a figure of its controls.

    Subclasses define `controls` (name -> ipywidget with a `value`) and `figure(**values)`. In
    JupyterLab, the controls are above a live figure. A headless run and its page, where no slider
    can be moved, show `static()`. Names and text of a user need `escape_label`, because plotly
    reads HTML in labels.
    """

    controls: dict[str, widgets.ValueWidget]

    @abstractmethod
    def figure(self, **values: Any) -> go.Figure:
        """The figure for these values of the controls."""

    @property
    def values(self) -> dict[str, Any]:
        """Current values of the controls by name."""
        return {name: control.value for name, control in self.controls.items()}

    def static(self) -> go.Figure:
        """The figure of the controls' current values, for headless runs and exported pages."""
        return self.figure(**self.values)

    def widget(self) -> widgets.Widget:
        """Controls above a live figure, which follows them."""
        self.live = go.FigureWidget(self.static())
        for control in self.controls.values():
            control.observe(lambda _change: self.redraw(), names="value")
        wrap = widgets.Layout(flex_flow="row wrap")
        controls = widgets.HBox(list(self.controls.values()), layout=wrap)
        return widgets.VBox([controls, self.live])

    def redraw(self) -> None:
        """Update the live figure, in place if its traces keep their types."""
        new = self.static()
        with self.live.batch_update():
            if [trace.type for trace in self.live.data] == [trace.type for trace in new.data]:
                for old, trace in zip(self.live.data, new.data, strict=True):
                    old.update(trace.to_plotly_json(), overwrite=True)
            else:
                self.live.data = ()
                self.live.add_traces(new.data)
            layout = new.layout.to_plotly_json()
            removed = set(self.live.layout.to_plotly_json()) - set(layout)
            self.live.layout.update({**dict.fromkeys(removed), **layout}, overwrite=True)

    def _ipython_display_(self) -> None:
        display(self.static() if "CSELAB_RUN_DIR" in os.environ else self.widget())


def escape_label(text: str) -> str:
    """Escape a user's text for a plotly label, so that tags are shown as text."""
    return escape(text, quote=False)
