"""Loss playground: points in the plane or in space, moved by the gradient of a method's loss."""

from collections.abc import Mapping
from typing import Any

import plotly.graph_objects as go
import torch
import traitlets
from pydantic import ValidationError

from cselab.errors import SettingsError, suggest
from cselab.methods import Method
from cselab.methods.terms import SHARED, TermConfig
from cselab.workbook.plots.theme import PALETTE
from cselab.workbook.widgets.descent import (
    Descent,
    Points,
    Row,
    as_json,
    as_lists,
    as_points,
    coins,
    random_points,
    thinned,
)
from cselab.workbook.widgets.playground_static import before_and_after
from cselab.workbook.widgets.playground_terms import changed_options, described
from cselab.workbook.widgets.widget import Widget

SHAPES = {"plane": 2, "space": 3, "sphere": 3}
"""Dimensions of each shape; on the sphere every length stays 1."""
SHOWN_ROWS, SHOWN_TRAIL = 500, 60
"""How many steps of Python's descent the browser gets."""


class LossPlayground(Widget):
    """Sentences as points, one per view and tower, moved by gradient descent on a method's loss.

    The browser descends by itself where it knows all terms with a weight; others it asks the
    kernel for. Points can be dragged. They are the vectors of the method's spaces, and also the
    poolers' outputs; a clean view (off-dropout) is the mean of the two views.

    Its controls are attributes, which can be set: `shape` ("plane", "space" or "sphere"), `terms`
    or `weights` (of every offered term), `options` (the terms' hyperparameters), `temperature`,
    `rate` (the step size), `speed` (steps a second), `arrows` ("sum", "each term" or "none"),
    `trails`, `compare` (a second loss on the same points, with the weights `other_weights`).

    `points` and `history` follow the browser, at the latest when it pauses. If Python and the
    browser move the points at the same time, Python's points are kept. Points are float64, as in
    the browser, or float32 if a term cannot compute in float64.

    Args:
        method: Any method with two views, from `cselab.methods.create` or your own. The weights and
            hyperparameters of its terms are its settings: `cselab.training.fit` can train
            `playground.method`, and the setting `terms` takes `playground.terms`.
        sentences: 2 to 7 (more are 7), one colour each.
        seed: Seed of the random points.

    Raises:
        SettingsError: For a method without two views, or with a term that needs text
            (`reads_text`), and for fewer than 2 sentences.

    Examples:
        >>> from cselab.data.hub import model_folder
        >>> from cselab.methods import create
        >>> from cselab.workbook.widgets import LossPlayground
        >>> playground = LossPlayground(create("simcse", folders=[model_folder("tiny-bert")]))
        >>> playground.terms = {"nce": 1, "dcl": 0.5}
        >>> playground.descend(10)
        >>> playground.history[-1]["nce"] < playground.history[0]["nce"]
        True
    """

    script = "playground"
    shape = traitlets.Enum(list(SHAPES), "plane").tag(sync=True)
    weights = traitlets.Dict().tag(sync=True)
    other_weights = traitlets.Dict().tag(sync=True)
    options = traitlets.Dict().tag(sync=True)
    temperature = traitlets.Float(0.05, min=1e-4, max=1e4).tag(sync=True)
    rate = traitlets.Float(0.01, min=0).tag(sync=True)
    speed = traitlets.Float(30, min=1).tag(sync=True)
    arrows = traitlets.Enum(["sum", "each term", "none"], "sum").tag(sync=True)
    trails = traitlets.Bool(True).tag(sync=True)
    compare = traitlets.Bool(False).tag(sync=True)
    method_name = traitlets.Unicode().tag(sync=True)
    spaces = traitlets.List(traitlets.Unicode()).tag(sync=True)  # in the order of the method
    coordinates = traitlets.Dict().tag(sync=True)  # of the points, exact
    catalogue = traitlets.List(traitlets.Dict()).tag(sync=True)  # of each term, for the browser
    coins = traitlets.Unicode().tag(sync=True)
    past = traitlets.Dict().tag(sync=True)  # start, points, rows, trail; set by Python alone
    news = traitlets.Dict().tag(sync=True)  # steps of the browser; set by the browser alone
    acknowledged = traitlets.Unicode().tag(sync=True)  # message of the last `news` that was applied

    def __init__(self, method: Method, *, sentences: int = 5, seed: int = 0):
        if sentences < 2:
            raise SettingsError(f"sentences is {sentences}; a loss compares 2 or more, up to 7")
        self.method, self.sentences, self.seed = method, min(sentences, len(PALETTE)), seed
        self.offered = tuple(
            name
            for name in dict.fromkeys((*method.terms, *method.own_terms, *SHARED))
            if not getattr(getattr(method, name, None), "reads_text", False)
        )
        if method.views != 2 or not method.terms.keys() <= set(self.offered):
            raise SettingsError(
                f"the playground moves two views of sentences as points; {type(method).__name__} "
                f"has {method.views} views and the terms {', '.join(method.terms)}; give a method "
                f"of two views, with terms among {', '.join(self.offered)}"
            )
        weights = {name: _config(method, name).weight for name in self.offered}
        options = {
            name: _config(method, name).model_dump(mode="json", exclude={"weight"})
            for name in self.offered
        }
        self.dtype = torch.float64
        if not self._computes(options):
            self.dtype = torch.float32
        self.descent = self._random(seed, "plane")
        super().__init__(
            weights=weights,
            other_weights=weights,
            options=options,
            temperature=method.settings.temperature,
            method_name=method.settings.method,
            spaces=list(method.space_names),
            coordinates=as_lists(self.points),
            catalogue=[described(method, name) for name in self.offered],
            coins=self.descent.coins,
        )
        self._show()

    @property
    def terms(self) -> dict[str, Any]:
        """Weights of the terms that are on, as the setting `terms` takes them.

        A term whose hyperparameters are not its defaults has them too. Setting it puts all others
        to 0, and hyperparameters that are not given to their defaults.
        """
        return {
            name: {"weight": config.weight, **changed} if changed else config.weight
            for name, config in self.method.terms.items()
            for changed in [changed_options(config)]
        }

    @terms.setter
    def terms(self, given: Mapping[str, Any] | list[str]) -> None:
        if not isinstance(given, Mapping):
            given = {name: {} for name in given}
        _check_known(given, self.offered)
        terms = {
            name: dict(value) if isinstance(value, Mapping) else {"weight": value}
            for name, value in given.items()
        }
        default = {name: self.method.settings.offered[name]().weight for name in terms}
        weights = {name: term.pop("weight", default[name]) for name, term in terms.items()}
        self.options = {**self.options, **terms}
        self.weights = weights

    @property
    def points(self) -> Points:
        """The points by space, (2, N, size); set it to move them."""
        return self.descent.points

    @points.setter
    def points(self, points: Points) -> None:
        self.descent.restart({space: rows.to(self.dtype) for space, rows in points.items()})
        self._show()

    @property
    def history(self) -> list[Row]:
        """A row a step: alignment, uniformity, mean lengths ‖space‖, and the weighted terms."""
        return self.descent.history

    def draw(self, seed: int | None = None) -> None:
        """Draw random points around a centre for each sentence.

        Args:
            seed: Seed of the points; None: the playground's.
        """
        self.descent = self._random(self.seed if seed is None else seed, self.shape)
        self._show()

    def descend(self, steps: int = 1) -> None:
        """Move the points by so many steps of gradient descent."""
        self.descent.rate = self.rate
        self.descent.descend(steps)
        self._show()

    def static(self) -> go.Figure:
        """The points before and after the steps, or after 150 where there are none yet."""
        self.descent.rate = self.rate
        return before_and_after(self.descent)

    def _random(self, seed: int, shape: str) -> Descent:
        points = random_points(self.method.space_names, self.sentences, SHAPES[shape], seed)
        points = {space: rows.to(self.dtype) for space, rows in points.items()}
        sphere, known = shape == "sphere", coins(self.seed)
        return Descent(self.method, points, 0.01, sphere, seed=self.seed, coins=known)

    def _computes(self, options: Mapping[str, Any]) -> bool:
        """Whether all offered terms take points of `dtype`."""
        before = self.method.settings
        terms = {name: before.offered[name](**options[name], weight=1) for name in self.offered}
        try:
            self.method.settings = before.model_copy(update={"terms": terms})
            self._random(self.seed, "plane").gradients()
        except Exception:  # a researcher's own code, which may need anything
            return False
        finally:
            self.method.settings = before
        return True

    def _sent(self, lists: dict[str, list]) -> Points:
        return as_points(lists, self.method.space_names, self.dtype)

    def _show(self) -> None:
        """Give the browser the points and the history."""
        with self.hold_sync():
            self.coordinates = as_lists(self.points)
            self.past = {**self._past(), "version": self.past.get("version", 0) + 1}

    def _past(self) -> dict[str, Any]:
        trail = thinned(self.descent.trail, SHOWN_TRAIL)
        return {
            "version": self.past.get("version", 0),
            "start": as_lists(self.descent.trail[0]),
            "points": as_lists(self.points),
            "rows": as_json(thinned(self.history, SHOWN_ROWS)),
            "trail": [as_lists(points, digits=4) for points in trail],
        }

    @traitlets.validate("weights", "other_weights")
    def _all_weights(self, proposal: Any) -> dict[str, float]:
        _check_known(proposal["value"], self.offered)
        weights = {name: float(proposal["value"].get(name, 0)) for name in self.offered}
        if low := [name for name, weight in weights.items() if not weight >= 0]:
            raise SettingsError(f"the weight of {low[0]!r} is {weights[low[0]]}; give 0 or more")
        return weights

    @traitlets.validate("options")
    def _all_options(self, proposal: Any) -> dict[str, dict[str, Any]]:
        _check_known(proposal["value"], self.offered)
        offered = self.method.settings.offered
        try:
            return {
                name: offered[name](**proposal["value"].get(name, {})).model_dump(
                    mode="json", exclude={"weight"}
                )
                for name in self.offered
            }
        except ValidationError as error:
            raise SettingsError(f"hyperparameters of the terms: {error}") from None

    @traitlets.observe("weights", "options", "temperature")
    def _apply(self, _change: Any) -> None:
        """Give the method the weights, hyperparameters and temperature."""
        self.method.settings = self._settings(self.weights)

    def _settings(self, weights: Mapping[str, float]) -> Any:
        """The method's settings with these weights; a term of weight 0 is left out."""
        config = self.method.settings
        terms = {
            name: config.offered[name](**self.options.get(name, {}), weight=weights[name])
            for name in self.offered
            if weights.get(name, 0) > 0
        }
        ordered = [*(name for name in config.terms if name in terms), *terms]
        terms = {name: terms[name] for name in ordered}
        return config.model_copy(update={"terms": terms, "temperature": self.temperature})

    @traitlets.observe("shape")
    def _reshape(self, _change: Any) -> None:
        """Draw points for the shape, unless the browser has sent some with it."""
        sent = self._sent(self.coordinates)
        if not self._fits(sent):
            self.draw()
            return
        self.descent.sphere = self.shape == "sphere"
        if not self._fits(self.points):
            self.descent.restart(sent)

    def _fits(self, points: Points) -> bool:
        return all(
            rows.shape[-1] == SHAPES[self.shape]
            and (self.shape != "sphere" or bool((rows.norm(dim=-1) - 1).abs().max() < 1e-4))
            for rows in points.values()
        )

    @traitlets.observe("news")
    def _follow(self, change: Any) -> None:
        """Take over what the browser has done.

        `from` is the step of its first row, `version` that of the `past` from which it went on.
        """
        news, descent = change["new"], self.descent
        if news["version"] != self.past["version"] or news["from"] > len(descent.history):
            self._show()  # Python has moved the points meanwhile, or steps are missing
            return
        descent.points, descent.sphere = self._sent(self.coordinates), self.shape == "sphere"
        if "start" in news:
            descent.trail = [self._sent(news["start"])]
        rows = [
            {key: float("nan") if x is None else x for key, x in r.items()} for r in news["rows"]
        ]
        descent.history[news["from"] :] = rows
        descent.trail = [descent.trail[0], descent.points]
        self.acknowledged = news["message"]

    def answer(self, question: dict[str, Any]) -> None:
        """Send a view all steps, or terms that the browser does not know, at its points."""
        if question["do"] == "past":
            self.send({"view": question["view"], "past": self._past()})
            return
        before = self.method.settings
        try:
            self.method.settings = self._settings(dict.fromkeys(question["terms"], 1.0))
            terms = self.descent.slopes(self._sent(question["points"]), question["step"])
        finally:
            self.method.settings = before
        self.send({"id": question["id"], "terms": terms})


def _config(method: Method, name: str) -> TermConfig:
    return method.terms.get(name) or method.settings.offered[name]().model_copy(
        update={"weight": 0}
    )


def _check_known(names: Any, offered: tuple[str, ...]) -> None:
    for name in names:
        if name not in offered:
            raise SettingsError(f"unknown term {name!r}; {suggest(name, offered)}")
