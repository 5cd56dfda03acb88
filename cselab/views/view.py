"""What every interactive view is: named controls, and a figure of their values."""

import os
from abc import ABC, abstractmethod
from html import escape
from typing import Any

import ipywidgets as widgets
import plotly.graph_objects as go
from IPython.display import display

LABEL = {"description_width": "initial"}
"""Style of a control whose description is a phrase."""


class View(ABC):
    """Subclass it with `controls` (name -> ipywidget with a `value`) and `figure(**values)`.

    In JupyterLab it shows its controls above a live figure. A headless run, where nobody can move a slider, and the page that
    is exported of it, show `static()`: the figure of the controls' values. Text that a user types goes into a figure through
    `shown`, for plotly reads HTML in labels.
    """

    controls: dict[str, widgets.ValueWidget]

    @abstractmethod
    def figure(self, **values: Any) -> go.Figure:
        """What the view shows for these values of its controls."""

    @property
    def values(self) -> dict[str, Any]:
        return {name: control.value for name, control in self.controls.items()}

    def static(self) -> go.Figure:
        """The figure of the controls' present values, for headless runs and exported pages."""
        return self.figure(**self.values)

    def widget(self) -> widgets.Widget:
        """Controls and figure; the figure follows the controls in place."""
        self.live = go.FigureWidget(self.static())
        for control in self.controls.values():
            control.observe(lambda _change: self.redraw(), names="value")
        row = widgets.HBox(list(self.controls.values()), layout=widgets.Layout(flex_flow="row wrap"))
        return widgets.VBox([row, self.live])

    def redraw(self) -> None:
        """Bring the live figure to the controls' present values, in one message where its traces keep their kinds."""
        new = self.static()
        with self.live.batch_update():
            if [trace.type for trace in self.live.data] == [trace.type for trace in new.data]:
                for old, trace in zip(self.live.data, new.data, strict=True):
                    old.update(trace.to_plotly_json(), overwrite=True)
            else:
                self.live.data = ()
                self.live.add_traces(new.data)
            layout = new.layout.to_plotly_json()
            gone = set(self.live.layout.to_plotly_json()) - set(layout)
            self.live.layout.update({**dict.fromkeys(gone), **layout}, overwrite=True)

    def _ipython_display_(self) -> None:
        display(self.static() if "CSELAB_RUN_DIR" in os.environ else self.widget())


def shown(text: str) -> str:
    """A user's text as plotly is to show it: letter by letter, no tags."""
    return escape(text, quote=False)
