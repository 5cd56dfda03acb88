"""Loss playground: points in the plane or in space, moved by the gradient of a method's loss."""

import itertools
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
from cselab.methods import Method, StepContext
from cselab.methods.terms import SHARED, TermConfig
from cselab.plots.theme import PALETTE
from cselab.widgets.widget import LABEL, FigureApp

SHAPES = {"plane": 2, "space": 3, "sphere": 3}
"""Dimensions of each shape; on the sphere every length stays 1."""
SYMBOLS = ("circle", "diamond")
SLIDER = widgets.Layout(width="300px")
SPREAD = 1.0
"""Standard deviation of a sentence's points around their centre, as large as that of the centres:
far from the optimum."""
LONGEST_ARROW = 0.7
MOST_OF_A_TRAIL = 80


class LossPlayground(FigureApp):
    """Sentences as points, one per view and tower, moved by gradient descent on a method's loss.

    Sliders set the weights of the method's terms and the temperature.

    method: any method with two views, from `cselab.methods.create` or your own. The sliders change
        its settings: `cselab.training.fit` can train `playground.method`, and the setting `terms`
        takes `playground.terms`. Points are the vectors of its spaces, and also the poolers'
        outputs; a clean view (off-dropout) is the mean of the two views.
    sentences: at most 7, one colour each.
    seed: of the random points.

    Raises SettingsError for a method without two views, or with a term that needs text
    (`reads_text`).

    >>> from cselab.methods import create
    >>> playground = LossPlayground(create("simcse", folders=["data/backbones/tiny-bert"]))
    >>> playground.descend(10)
    >>> playground.history[-1]["nce"] < playground.history[0]["nce"]
    True
    """

    def __init__(self, method: Method, *, sentences: int = 5, seed: int = 0):
        self.method, self.sentences, self.seed = method, min(sentences, len(PALETTE)), seed
        self.offered = tuple(
            name
            for name in dict.fromkeys((*method.own_terms, *SHARED))
            if not getattr(getattr(method, name, None), "reads_text", False)
        )
        if method.views != 2 or not method.terms.keys() <= set(self.offered):
            raise SettingsError(
                f"the playground moves two views of sentences as points; {type(method).__name__} "
                f"has {method.views} views and the terms {', '.join(method.terms)}; give a method "
                f"of two views, with terms among {', '.join(self.offered)}"
            )
        self.controls = {
            "shape": widgets.Dropdown(options=list(SHAPES), description="points in"),
            **{
                name: widgets.FloatSlider(
                    _weight(method, name),
                    min=0,
                    max=max(2, 2 * _weight(method, name)),
                    step=0.05,
                    description=name,
                    layout=SLIDER,
                )
                for name in self.offered
            },
            "temperature": widgets.FloatLogSlider(
                method.settings.temperature,
                min=-2,
                max=0.5,
                description="temperature τ",
                style=LABEL,
                layout=SLIDER,
            ),
            "rate": widgets.FloatLogSlider(
                0.01, min=-4, max=0, description="step size", layout=SLIDER
            ),
        }
        self.point = widgets.Dropdown(
            options=[(name, key) for key, name in self._names().items()], description="point"
        )
        # Whole numbers: the browser rounds others in its own way, and sends them back as moves.
        self.angle = widgets.IntSlider(0, min=-180, max=180, description="angle (°)", layout=SLIDER)
        self.length = widgets.IntSlider(
            100, min=10, max=300, step=5, description="length (%)", layout=SLIDER
        )
        for control in self.controls.values():
            control.observe(lambda change: self._apply(), names="value")
        self.draw()
        self.controls["shape"].observe(lambda change: self.draw(), names="value")
        self.point.observe(lambda change: self._show_point(), names="value")
        self.angle.observe(lambda change: self._move_point(angle=change["new"]), names="value")
        self.length.observe(lambda change: self._move_point(length=change["new"]), names="value")

    @property
    def terms(self) -> dict[str, float]:
        """Weights of the terms that are on, as the setting `terms` takes them."""
        return {name: config.weight for name, config in self.method.terms.items()}

    def draw(self, seed: int | None = None) -> None:
        """Draw random points around a centre for each sentence."""
        random = torch.Generator().manual_seed(self.seed if seed is None else seed)
        size = SHAPES[self.controls["shape"].value]
        centre = torch.randn(self.sentences, size, generator=random)
        self.points = {
            space: self._project(
                centre + SPREAD * torch.randn(2, self.sentences, size, generator=random)
            )
            for space in self.method.space_names
        }
        self.history: list[dict[str, float | int]] = []
        self.history.append(self._measure())
        self.trail = [self.points]
        self._show_point()

    def descend(self, steps: int = 1) -> None:
        """Move the points by so many steps of gradient descent."""
        for _ in range(steps):
            gradients, rate = self.gradients(), self.controls["rate"].value
            if gradients is None:
                return
            self.points = {
                space: self._project(rows - rate * gradients[space])
                for space, rows in self.points.items()
            }
            self.history.append(self._measure())
            self.trail.append(self.points)

    def gradients(self) -> dict[str, Tensor] | None:
        """The gradient of the loss on each point, by space; None if all weights are 0."""
        points = {space: rows.clone().requires_grad_() for space, rows in self.points.items()}
        loss = sum(self._losses(points).values())
        if not isinstance(loss, Tensor):
            return None
        found = torch.autograd.grad(loss, list(points.values()))
        return dict(zip(points, found, strict=True))

    def _project(self, rows: Tensor) -> Tensor:
        """The points, with length 1 on the sphere."""
        if self.controls["shape"].value == "sphere":
            return rows / rows.norm(dim=-1, keepdim=True)
        return rows

    def figure(self, **values: Any) -> go.Figure:
        """The figure of the points and their history."""
        space = {"type": "scene"} if SHAPES[values["shape"]] == 3 else {}
        figure = make_subplots(
            rows=2,
            cols=3,
            column_widths=[0.46, 0.27, 0.27],
            horizontal_spacing=0.08,
            vertical_spacing=0.2,
            specs=[[{**space, "rowspan": 2}, {}, {}], [None, {}, {}]],
            subplot_titles=[
                "points (filled: view a, open: view b)",
                "loss",
                "alignment, uniformity",
                "mean length",
                "l<sub>TN</sub>",
            ],
        )
        self._plot_points(figure)
        _plot_history(figure, self.history, [*self.method.terms], 1, 2)
        _plot_history(figure, self.history, ["alignment", "uniformity"], 1, 3)
        _plot_history(figure, self.history, [f"‖{space}‖" for space in self.points], 2, 2)
        self._plot_modulus(figure)
        return figure.update_layout(
            height=700, margin=dict(t=60, b=110), legend=dict(y=-0.12, yanchor="top")
        )

    def widget(self) -> widgets.Widget:
        """Controls and figure, with buttons for gradient descent and sliders for one point."""
        box, count = super().widget(), itertools.count(1)
        again = widgets.Button(description="random points")
        again.on_click(lambda _button: (self.draw(self.seed + next(count)), self.redraw()))
        play = widgets.Play(max=200, interval=250)
        play.description = "gradient descent"
        play.observe(
            lambda change: change["new"] and (self.descend(5), self.redraw()), names="value"
        )
        step = widgets.Button(description="one step", icon="step-forward")
        step.on_click(lambda _button: (self.descend(), self.redraw()))
        self._observe_clicks()
        wrap = widgets.Layout(flex_flow="row wrap")
        buttons = widgets.HBox([play, step, again], layout=wrap)
        sliders = widgets.HBox([self.point, self.angle, self.length], layout=wrap)
        return widgets.VBox([box.children[0], buttons, sliders, self.live])

    def _names(self) -> dict[tuple[str, int, int], str]:
        """Names of the points by space, view and sentence."""
        return {
            (space, view, n): f"{space}, view {'ab'[view]}, sentence {n + 1}"
            for space in self.method.space_names
            for view in range(2)
            for n in range(self.sentences)
        }

    def redraw(self) -> None:
        """Update the live figure and the sliders, and observe clicks on traces that may be new."""
        super().redraw()
        self._show_point()
        self._observe_clicks()

    def _observe_clicks(self) -> None:
        for trace in self.live.data[: 2 * len(self.points)]:
            trace.on_click(self._on_click)

    def _on_click(self, trace: go.Scatter, points: Any, _state: Any) -> None:
        if points.point_inds:
            space, view = trace.meta
            self.point.value = (space, int(view), points.point_inds[0])

    def _show_point(self) -> None:
        """Set the sliders to the chosen point, rounded to their steps."""
        space, view, n = self.point.value
        point, step = self.points[space][view, n], self.length.step
        self._moving = False
        self.angle.value = round(math.degrees(math.atan2(point[1], point[0])))
        self.length.value = round(100 * point.norm().item() / step) * step
        self._moving = True

    def _move_point(self, *, angle: int | None = None, length: int | None = None) -> None:
        """Set the chosen point's angle in its first two axes, in degrees, or its length in %."""
        if not self._moving:
            return
        space, view, n = self.point.value
        point = self.points[space][view, n].clone()
        if angle is not None:
            radians = math.radians(angle)
            direction = torch.tensor([math.cos(radians), math.sin(radians)])
            point[:2] = direction * point[:2].norm().clamp(min=1e-3)
        if length is not None:
            point *= length / 100 / point.norm()
        self.points[space][view, n] = self._project(point)
        self.history.append(self._measure())
        self.redraw()

    def _apply(self) -> None:
        """Set the method's weights and temperature to the sliders' values."""
        values, config = self.values, self.method.settings
        terms = {}
        for name in self.offered:
            if values[name] > 0:
                known = config.terms.get(name) or config.offered[name]()
                terms[name] = known.model_copy(update={"weight": values[name]})
        changes = {"terms": terms, "temperature": values["temperature"]}
        self.method.settings = config.model_copy(update=changes)

    def _losses(self, points: dict[str, Tensor]) -> dict[str, Tensor]:
        outputs = self.method.placed(list(points.values()))
        return self.method.compare(outputs, StepContext.at(self.seed, len(self.history)))

    def _measure(self) -> dict[str, float | int]:
        """A row of the history: geometry, mean lengths and loss terms of the points."""
        a, b = (torch.cat([rows[view] for rows in self.points.values()]) for view in range(2))
        row = {
            "step": len(self.history),
            "alignment": alignment(a, b).item(),
            "uniformity": uniformity(a).item(),
        }
        for space, rows in self.points.items():
            row[f"‖{space}‖"] = rows.norm(dim=-1).mean().item()
        return row | {name: value.item() for name, value in self._losses(self.points).items()}

    def _plot_points(self, figure: go.Figure) -> None:
        flat = next(iter(self.points.values())).shape[-1] == 2
        add = figure.add_scatter if flat else figure.add_scatter3d
        axes = "xy" if flat else "xyz"
        symbols = itertools.cycle(SYMBOLS)
        for (space, rows), symbol in zip(self.points.items(), symbols, strict=False):
            for view in range(2):
                add(
                    **dict(zip(axes, rows[view].T.tolist(), strict=True)),
                    mode="markers",
                    name=f"{space}, view {'ab'[view]}",
                    meta=[space, view],
                    row=1,
                    col=1,
                    hovertext=[f"sentence {n + 1}" for n in range(self.sentences)],
                    marker=dict(
                        symbol=symbol + ("-open" if view else ""),
                        size=(14 if flat else 6),
                        color=PALETTE[: self.sentences],
                    ),
                )
        ties = [rows[:, n] for rows in self.points.values() for n in range(self.sentences)]
        looks = {
            "positives": (ties, dict(color="#bbb", width=1)),
            "trails": (self._trails(), dict(color="#888", width=1, dash="dot")),
            "downhill": (self._arrows(), dict(color="#222", width=2)),
        }
        for name, (lines, line) in looks.items():
            where = {"mode": "lines", "hoverinfo": "skip", "row": 1, "col": 1}
            coordinates = _joined(lines, rows.shape[-1])
            add(**dict(zip(axes, coordinates, strict=True)), name=name, line=line, **where)
        farthest = max(rows.abs().max().item() for points in self.trail for rows in points.values())
        reach = 1.1 * max(farthest, 1)
        if flat:
            figure.add_shape(
                type="circle",
                x0=-1,
                x1=1,
                y0=-1,
                y1=1,
                line=dict(color="#bbb", dash="dot"),
                row=1,
                col=1,
            )
            figure.update_xaxes(range=[-reach, reach], row=1, col=1)
            figure.update_yaxes(range=[-reach, reach], scaleanchor="x", row=1, col=1)
        else:
            on_sphere = self.controls["shape"].value == "sphere"
            if on_sphere:
                figure.add_trace(_sphere(), row=1, col=1)
            ranges = {f"{axis}axis_range": [-reach, reach] for axis in axes}
            figure.update_scenes(aspectmode="cube", **ranges)

    def _trails(self) -> list[Tensor]:
        """The way of each point, (steps, size), every so many steps."""
        some = self.trail[:: -(-len(self.trail) // MOST_OF_A_TRAIL)]
        ways = [torch.stack([points[space] for points in some]) for space in self.points]
        return [way[:, v, n] for way in ways for v in range(2) for n in range(self.sentences)]

    def _arrows(self) -> list[Tensor]:
        """From each point down its gradient, (2, size); the longest has a fixed length."""
        gradients = self.gradients()
        if gradients is None:
            return []
        longest = max(rows.norm(dim=-1).max() for rows in gradients.values()).clamp(min=1e-9)
        return [
            torch.stack([point, point - LONGEST_ARROW * gradient / longest])
            for space, rows in self.points.items()
            for point, gradient in zip(
                rows.flatten(0, 1), gradients[space].flatten(0, 1), strict=True
            )
        ]

    def _plot_modulus(self, figure: go.Figure) -> None:
        """Plot l_TN over norm ratio and cosine, with the positive pairs as points.

        Pairs are across two towers, or across the views of one tower.
        """
        k, t = torch.linspace(0, 3, 61), torch.linspace(-1, 1, 41)
        figure.add_contour(
            x=k.tolist(),
            y=t.tolist(),
            z=modulus_surface(k[None, :], t[:, None]).tolist(),
            colorscale="Cividis",
            showscale=False,
            contours=dict(start=0, end=1, size=0.1),
            row=2,
            col=3,
            hoverinfo="skip",
        )
        spaces = list(self.points.values())
        p, q = spaces[0][0], spaces[-1][1]
        ratio, cosine = q.norm(dim=-1) / p.norm(dim=-1), torch.cosine_similarity(p, q)
        figure.add_scatter(
            x=ratio.clamp(max=3).tolist(),
            y=cosine.tolist(),
            mode="markers",
            showlegend=False,
            row=2,
            col=3,
            marker=dict(
                color=PALETTE[: self.sentences], size=10, line=dict(color="white", width=1.5)
            ),
        )
        figure.update_xaxes(title="ratio of lengths", range=[0, 3], row=2, col=3)
        figure.update_yaxes(title="cosine", range=[-1.05, 1.05], row=2, col=3)


def _joined(lines: list[Tensor], size: int) -> list[list[float | None]]:
    """Coordinates of several lines in one trace, axis by axis, with None between them."""
    rows = [row for line in lines for row in [*line.tolist(), [None] * size]]
    return [list(axis) for axis in zip(*rows, strict=True)] or [[] for _ in range(size)]


def _weight(method: Method, name: str) -> float:
    return method.terms.get(name, TermConfig(weight=0)).weight


def _sphere() -> go.Surface:
    up, around = torch.linspace(0, math.pi, 25)[:, None], torch.linspace(0, 2 * math.pi, 49)[None]
    x, y, z = up.sin() * around.cos(), up.sin() * around.sin(), up.cos().expand(-1, 49)
    grey = [[0, "#999"], [1, "#999"]]
    return go.Surface(
        x=x.tolist(),
        y=y.tolist(),
        z=z.tolist(),
        opacity=0.15,
        showscale=False,
        colorscale=grey,
        hoverinfo="skip",
    )


def _plot_history(
    figure: go.Figure,
    history: list[dict[str, float | int]],
    names: list[str],
    row: int,
    column: int,
) -> None:
    """Plot values of the history over the steps, with a legend inside the panel."""
    steps, legend = list(range(len(history))), f"legend{2 * row + column}"
    for colour, name in zip(PALETTE, names, strict=False):
        figure.add_scatter(
            x=steps,
            y=[entry.get(name) for entry in history],
            name=name,
            line=dict(color=colour),
            legend=legend,
            mode="lines" if len(history) > 1 else "markers",
            row=row,
            col=column,
        )
    figure.update_xaxes(title="step", row=row, col=column)
    panel = figure.get_subplot(row, column)
    middle = sum(panel.yaxis.domain) / 2
    place = dict(
        x=panel.xaxis.domain[1], y=middle, xanchor="right", yanchor="middle", orientation="v"
    )
    figure.update_layout({legend: dict(**place, bgcolor="rgba(255,255,255,0.7)", font_size=11)})
