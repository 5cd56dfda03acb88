"""The loss playground: points of one or two towers in the plane or in space, moved by the gradient of a method's own loss."""

import math
from typing import Any

import ipywidgets as widgets
import plotly.graph_objects as go
import torch
from plotly.subplots import make_subplots
from torch import Tensor

from cselab.errors import SettingsError
from cselab.evaluation import alignment, uniformity
from cselab.losses import modulus_surface
from cselab.methods import Method, StepContext, Vectors
from cselab.methods.terms import SHARED
from cselab.views.theme import PALETTE
from cselab.views.view import LABEL, View

SHAPES = {"plane": 2, "space": 3, "sphere": 3}
"""Dimensions; on the sphere every length stays 1."""
SYMBOLS = ("circle", "diamond")
NUMBERS = widgets.Layout(width="300px")


class LossPlayground(View):
    """Sentences as points, a view and a tower each; sliders weigh the method's terms, and gradient descent moves the points.

    method: any two-view method, `cselab.methods.create` or one of your own. It is what the sliders change (`terms` and the
        temperature), so that `playground.method` is what `cselab.training.fit` takes, and `playground.terms` what the
        setting `terms` does. Points stand for the vectors of its `spaces`, and also for the poolers' outputs; a clean
        view (off-dropout) is the mean of the two.
    sentences: at most 7, one colour each. seed: of random points.

    Raises SettingsError for a method that has not two views, or a term of it that reads more than points are (`text_terms`).
    """

    def __init__(self, method: Method, *, sentences: int = 5, seed: int = 0):
        self.method, self.sentences, self.seed = method, min(sentences, len(PALETTE)), seed
        self.offered = tuple(
            name for name in dict.fromkeys((*method.own_terms, *SHARED)) if name not in method.text_terms
        )
        if method.views != 2 or not method.terms.keys() <= set(self.offered):
            raise SettingsError(
                f"the playground moves two views of sentences as points; {type(method).__name__} has {method.views} views and the terms "
                f"{', '.join(method.terms)}; give a method of two views, with terms among {', '.join(self.offered)}"
            )
        self.controls = {
            "shape": widgets.Dropdown(options=list(SHAPES), description="points in"),
            **{
                name: widgets.FloatSlider(method.terms.get(name, 0.0), min=0, max=2, step=0.05, description=name, layout=NUMBERS)
                for name in self.offered
            },
            "temperature": widgets.FloatLogSlider(
                method.settings.temperature, min=-2, max=0.5, description="temperature τ", style=LABEL, layout=NUMBERS
            ),
            "rate": widgets.FloatLogSlider(0.01, min=-4, max=0, description="step size", layout=NUMBERS),
        }  # fmt: skip
        self.point = widgets.Dropdown(options=[(name, key) for key, name in self._names().items()], description="point")
        self.angle = widgets.FloatSlider(0, min=-180, max=180, step=1, description="angle (°)", layout=NUMBERS)
        self.length = widgets.FloatSlider(1, min=0.1, max=3, step=0.05, description="length", layout=NUMBERS)
        for control in self.controls.values():
            control.observe(lambda change: self._apply(), names="value")
        self.draw()
        self.controls["shape"].observe(lambda change: self.draw(), names="value")
        self.point.observe(lambda change: self._show_point(), names="value")
        self.angle.observe(lambda change: self._move_point(angle=change["new"]), names="value")
        self.length.observe(lambda change: self._move_point(length=change["new"]), names="value")

    @property
    def terms(self) -> str:
        """What the sliders say, as the setting `terms` has it."""
        return ",".join(f"{name}:{weight:g}" for name, weight in self.method.terms.items())

    def draw(self, seed: int | None = None) -> None:
        """Random points; a sentence's own lie near each other."""
        random = torch.Generator().manual_seed(self.seed if seed is None else seed)
        size = SHAPES[self.controls["shape"].value]
        centre = torch.randn(self.sentences, size, generator=random)
        self.points = {
            space: self._placed(centre + 0.35 * torch.randn(2, self.sentences, size, generator=random))
            for space in self.method.spaces
        }
        self.history: list[dict[str, float | int]] = []
        self.history.append(self._measured())
        self._show_point()

    def descend(self, steps: int = 1) -> None:
        """So many steps of plain gradient descent on the points."""
        for _ in range(steps):
            points = {space: rows.clone().requires_grad_() for space, rows in self.points.items()}
            loss = sum(self._losses(points).values())
            if not isinstance(loss, Tensor):  # no term is on
                return
            gradients = torch.autograd.grad(loss, list(points.values()))
            rate = self.controls["rate"].value
            self.points = {
                space: self._placed((rows - rate * gradient).detach())
                for (space, rows), gradient in zip(self.points.items(), gradients, strict=True)
            }
            self.history.append(self._measured())

    def _placed(self, rows: Tensor) -> Tensor:
        return rows / rows.norm(dim=-1, keepdim=True) if self.controls["shape"].value == "sphere" else rows

    def figure(self, **values: Any) -> go.Figure:
        space = {"type": "scene"} if SHAPES[values["shape"]] == 3 else {}
        figure = make_subplots(
            rows=2, cols=3, column_widths=[0.46, 0.27, 0.27], horizontal_spacing=0.08, vertical_spacing=0.2,
            specs=[[{**space, "rowspan": 2}, {}, {}], [None, {}, {}]],
            subplot_titles=["points (filled: view a, open: view b)", "loss", "alignment, uniformity", "mean length", "l<sub>TN</sub>"],
        )  # fmt: skip
        self._scatter(figure)
        _lines(figure, self.history, [*self.method.terms], 1, 2)
        _lines(figure, self.history, ["alignment", "uniformity"], 1, 3)
        _lines(figure, self.history, [f"‖{space}‖" for space in self.points], 2, 2)
        self._surface(figure)
        return figure.update_layout(height=700, margin=dict(t=60, b=110), legend=dict(y=-0.12, yanchor="top"))

    def widget(self) -> widgets.Widget:
        whole = super().widget()
        again, play = widgets.Button(description="random points"), widgets.Play(max=200, interval=250)
        play.description, count = "gradient descent", iter(range(1, 1_000_000))
        again.on_click(lambda _button: (self.draw(self.seed + next(count)), self.redraw()))
        play.observe(lambda change: change["new"] and (self.descend(5), self.redraw()), names="value")
        step = widgets.Button(description="one step", icon="step-forward")
        step.on_click(lambda _button: (self.descend(), self.redraw()))
        self._listen()
        motion = widgets.HBox([play, step, again], layout=widgets.Layout(flex_flow="row wrap"))
        moved = widgets.HBox([self.point, self.angle, self.length], layout=widgets.Layout(flex_flow="row wrap"))
        return widgets.VBox([whole.children[0], motion, moved, self.live])

    def _names(self) -> dict[tuple[str, int, int], str]:
        return {
            (space, view, n): f"{space}, view {'ab'[view]}, sentence {n + 1}"
            for space in self.method.spaces
            for view in range(2)
            for n in range(self.sentences)
        }

    def redraw(self) -> None:
        super().redraw()
        self._listen()  # its traces may be new ones

    def _listen(self) -> None:
        for trace in self.live.data[: 2 * len(self.points)]:
            trace.on_click(self._clicked)

    def _clicked(self, trace: go.Scatter, clicked: Any, _state: Any) -> None:
        if clicked.point_inds:
            space, view = trace.meta
            self.point.value = (space, int(view), clicked.point_inds[0])

    def _show_point(self) -> None:
        """Its place on the sliders, to their steps: the browser would send a value between two of them back as a move."""
        space, view, n = self.point.value
        x, y = self.points[space][view, n, :2].tolist()
        self._moving = False
        self.angle.value = round(math.degrees(math.atan2(y, x)))
        self.length.value = round(self.points[space][view, n].norm().item() / self.length.step) * self.length.step
        self._moving = True

    def _move_point(self, *, angle: float | None = None, length: float | None = None) -> None:
        """Turn the point in its first two axes to an angle in degrees, or give it a length."""
        if not self._moving:
            return
        space, view, n = self.point.value
        point = self.points[space][view, n].clone()
        if angle is not None:
            way = math.radians(angle)
            point[:2] = torch.tensor([math.cos(way), math.sin(way)]) * point[:2].norm().clamp(min=1e-3)
        if length is not None:
            point *= length / point.norm()
        self.points[space][view, n] = self._placed(point)
        self.history.append(self._measured())
        self.redraw()

    def _apply(self) -> None:
        """Give the method the sliders' weights and temperature."""
        values = self.values
        self.method.terms = {name: values[name] for name in self.offered if values[name] > 0}
        self.method.settings = self.method.settings.changed(temperature=values["temperature"])

    def _losses(self, points: dict[str, Tensor]) -> dict[str, Tensor]:
        vectors: Vectors = dict(points)
        for space, rows in points.items():
            vectors[f"{space}_clean"] = rows.mean(0, keepdim=True)
            vectors[space.replace("cls", "pooled").replace("sentence", "pooled")] = rows
        return self.method.compare(vectors, StepContext.at(self.seed, len(self.history)))

    def _measured(self) -> dict[str, float | int]:
        a, b = (torch.cat([rows[view] for rows in self.points.values()]) for view in range(2))
        row = {"step": len(self.history), "alignment": alignment(a, b).item(), "uniformity": uniformity(a).item()}
        row |= {f"‖{space}‖": rows.norm(dim=-1).mean().item() for space, rows in self.points.items()}
        return row | {name: value.item() for name, value in self._losses(self.points).items()}

    def _scatter(self, figure: go.Figure) -> None:
        flat = next(iter(self.points.values())).shape[-1] == 2
        add = figure.add_scatter if flat else figure.add_scatter3d
        axes = "xy" if flat else "xyz"
        for (space, rows), symbol in zip(self.points.items(), SYMBOLS * len(self.points), strict=False):
            for view in range(2):
                add(
                    **dict(zip(axes, rows[view].T.tolist(), strict=True)), mode="markers", name=f"{space}, view {'ab'[view]}",
                    meta=[space, view], row=1, col=1, hovertext=[f"sentence {n + 1}" for n in range(self.sentences)],
                    marker=dict(
                        symbol=symbol + ("-open" if view else ""), size=(14 if flat else 6), color=PALETTE[: self.sentences],
                    ),
                )  # fmt: skip
        gap = [[None] * rows.shape[-1]]  # NaN is no JSON
        ties = [p for rows in self.points.values() for n in range(self.sentences) for p in rows[:, n].tolist() + gap]
        add(
            **dict(zip(axes, zip(*ties, strict=True), strict=True)), mode="lines", line=dict(color="#bbb", width=1), name="positives",
            hoverinfo="skip", row=1, col=1,
        )  # fmt: skip
        if flat:
            figure.add_shape(type="circle", x0=-1, x1=1, y0=-1, y1=1, line=dict(color="#bbb", dash="dot"), row=1, col=1)
            figure.update_xaxes(range=[-2.6, 2.6], row=1, col=1)
            figure.update_yaxes(range=[-2.6, 2.6], scaleanchor="x", row=1, col=1)
        else:
            if self.controls["shape"].value == "sphere":
                figure.add_trace(_sphere(), row=1, col=1)
            reach = 1.1 if self.controls["shape"].value == "sphere" else 2.6
            figure.update_scenes(aspectmode="cube", **{f"{axis}axis_range": [-reach, reach] for axis in axes})

    def _surface(self, figure: go.Figure) -> None:
        """`l_TN` over length ratio and cosine, and where the positives are: across two towers, or across one tower's views."""
        k, t = torch.linspace(0, 3, 61), torch.linspace(-1, 1, 41)
        figure.add_contour(
            x=k.tolist(), y=t.tolist(), z=modulus_surface(k[None, :], t[:, None]).tolist(), colorscale="Cividis", showscale=False,
            contours=dict(start=0, end=1, size=0.1), row=2, col=3, hoverinfo="skip",
        )  # fmt: skip
        spaces = list(self.points.values())
        p, q = spaces[0][0], spaces[-1][1]
        ratio, cosine = q.norm(dim=-1) / p.norm(dim=-1), torch.cosine_similarity(p, q)
        figure.add_scatter(
            x=ratio.clamp(max=3).tolist(), y=cosine.tolist(), mode="markers", showlegend=False, row=2, col=3,
            marker=dict(color=PALETTE[: self.sentences], size=10, line=dict(color="white", width=1.5)),
        )  # fmt: skip
        figure.update_xaxes(title="ratio of lengths", range=[0, 3], row=2, col=3)
        figure.update_yaxes(title="cosine", range=[-1.05, 1.05], row=2, col=3)


def _sphere() -> go.Surface:
    up, around = torch.linspace(0, math.pi, 25)[:, None], torch.linspace(0, 2 * math.pi, 49)[None]
    x, y, z = up.sin() * around.cos(), up.sin() * around.sin(), up.cos().expand(-1, 49)
    grey = [[0, "#999"], [1, "#999"]]
    return go.Surface(
        x=x.tolist(), y=y.tolist(), z=z.tolist(), opacity=0.15, showscale=False, colorscale=grey, hoverinfo="skip"
    )


def _lines(figure: go.Figure, history: list[dict[str, float | int]], names: list[str], row: int, column: int) -> None:
    """Lines over the steps, with a legend of their own inside the panel."""
    steps, legend = list(range(len(history))), f"legend{2 * row + column}"
    for colour, name in zip(PALETTE, names, strict=False):
        figure.add_scatter(
            x=steps, y=[mark.get(name) for mark in history], name=name, line=dict(color=colour), legend=legend,
            mode="lines" if len(history) > 1 else "markers",
            row=row, col=column,
        )  # fmt: skip
    figure.update_xaxes(title="step", row=row, col=column)
    panel = figure.get_subplot(row, column)
    middle = sum(panel.yaxis.domain) / 2
    place = dict(x=panel.xaxis.domain[1], y=middle, xanchor="right", yanchor="middle", orientation="v")
    figure.update_layout({legend: dict(**place, bgcolor="rgba(255,255,255,0.7)", font_size=11)})
