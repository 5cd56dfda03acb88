"""Loss playground: points in the plane or in space, moved by the gradient of a method's loss."""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
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
    as_lists,
    as_points,
    coins,
    random_points,
)
from cselab.workbook.widgets.playground_figure import before_and_after
from cselab.workbook.widgets.playground_terms import described
from cselab.workbook.widgets.widget import Widget

SHAPES = {"plane": 2, "space": 3, "sphere": 3}  # dimensions


class LossPlayground(Widget):
    """Sentences as points, one per view and tower, moved by gradient descent on a method's loss.

    The browser computes the terms that it knows, and asks the kernel for others. Points can be
    dragged. They are the vectors of the method's spaces, and also the poolers' outputs; a clean
    view (off-dropout) is the mean of the two views.

    Controls, which can be set as attributes: `shape` ("plane", "space" or "sphere"), `terms` or
    `weights` of every offered term, `options` (hyperparameters), `temperature`, `rate` (step size),
    `speed` (steps a second), `arrows` ("sum", "each term" or "none"), `rays` from the origin,
    `trails`, `compare` (a second loss, with the weights `other_weights`). `points` and `history`
    follow the browser, at the latest when it pauses. If both move the points at the same time,
    Python's are kept.

    Args:
        method: Any method with two views, none of whose terms needs text (`reads_text`). `fit` can
            train `playground.method`, and the setting `terms` takes `playground.terms`.
        sentences: 2 to 7 (more are 7), one colour each.

    Raises:
        SettingsError: For another method, and for fewer than 2 sentences.

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
    rays = traitlets.Bool(True).tag(sync=True)
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
                f"{type(method).__name__} has {method.views} views and the terms "
                f"{', '.join(method.terms)}; points need two views and {', '.join(self.offered)}"
            )
        terms = {name: self._config(name) for name in self.offered}
        weights = {name: config.weight for name, config in terms.items()}
        self.dtype = torch.float64
        if not self._computes(terms):
            self.dtype = torch.float32  # what a term of your own may need
        self.descent = self._random(seed, "plane")
        super().__init__(
            weights=weights,
            other_weights=weights,
            options={name: _options(config) for name, config in terms.items()},
            temperature=method.settings.temperature,
            method_name=method.settings.method,
            spaces=list(method.space_names),
            coordinates=as_lists(self.points),
            catalogue=[described(method, name) for name in self.offered],
            coins=coins(seed),
        )
        self._show()

    @property
    def terms(self) -> dict[str, Any]:
        """Weights and changed hyperparameters of the terms, as the setting `terms` takes them.

        Setting it puts all other weights to 0 and all other hyperparameters to their defaults.
        """
        return {
            name: {"weight": config.weight, **changed} if changed else config.weight
            for name, config in self.method.terms.items()
            for changed in [config.model_dump(exclude_defaults=True, exclude={"weight"})]
        }

    @terms.setter
    def terms(self, terms: Mapping[str, Any] | list[str]) -> None:
        if not isinstance(terms, Mapping):
            terms = {name: {} for name in terms}
        self._check_known(terms)
        terms = {
            name: dict(value) if isinstance(value, Mapping) else {"weight": value}
            for name, value in terms.items()
        }
        kinds = self.method.settings.offered
        weights = {name: x.pop("weight", kinds[name]().weight) for name, x in terms.items()}
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
    def history(self) -> list[dict[str, float | int]]:
        """A row a step: alignment, uniformity, mean lengths ‖space‖, and the weighted terms."""
        return self.descent.history

    def draw(self, seed: int | None = None) -> None:
        """Draw random points around a centre for each sentence, of `seed` or the playground's."""
        self.descent = self._random(self.seed if seed is None else seed, self.shape)
        self._show()

    def descend(self, steps: int = 1) -> None:
        """Move the points by so many steps of gradient descent."""
        self.descent.rate = self.rate
        self.descent.descend(steps)
        self._show()

    def static(self) -> go.Figure:
        """The points at the start and now, and the weighted terms and mean lengths by step."""
        return before_and_after(self.descent.trail[0], self.points, self.history)

    def _random(self, seed: int, shape: str) -> Descent:
        points = random_points(self.method.space_names, self.sentences, SHAPES[shape], seed)
        points = {space: rows.to(self.dtype) for space, rows in points.items()}
        return Descent(self.method, points, 0.01, shape == "sphere", self.seed)

    def _config(self, name: str) -> TermConfig:
        default = self.method.settings.offered[name]().model_copy(update={"weight": 0})
        return self.method.terms.get(name, default)

    @contextmanager
    def _using(self, settings: Any) -> Iterator[None]:
        """Give the method other settings for a moment."""
        before = self.method.settings
        try:
            self.method.settings = settings
            yield
        finally:
            self.method.settings = before

    def _computes(self, terms: Mapping[str, TermConfig]) -> bool:
        """Tell whether all terms take points of `dtype`."""
        on = {name: config.model_copy(update={"weight": 1}) for name, config in terms.items()}
        try:
            with self._using(self.method.settings.model_copy(update={"terms": on})):
                self._random(self.seed, "plane").gradients()
        except Exception:  # a researcher's own code
            return False
        return True

    def _check_known(self, names: Iterable[str]) -> None:
        for name in names:
            if name not in self.offered:
                raise SettingsError(f"unknown term {name!r}; {suggest(name, self.offered)}")

    def _sent(self, lists: dict[str, list]) -> Points:
        return as_points(lists, self.method.space_names, self.dtype)

    def _show(self) -> None:
        """Give the browser the points and the history."""
        with self.hold_sync():
            self.coordinates = as_lists(self.points)
            self.past = {**self.descent.past(), "version": self.past.get("version", 0) + 1}

    @traitlets.validate("weights", "other_weights")
    def _all_weights(self, proposal: Any) -> dict[str, float]:
        self._check_known(proposal["value"])
        weights = {name: float(proposal["value"].get(name, 0)) for name in self.offered}
        if low := [name for name, weight in weights.items() if not weight >= 0]:
            raise SettingsError(f"the weight of {low[0]!r} is {weights[low[0]]}; give 0 or more")
        return weights

    @traitlets.validate("options")
    def _all_options(self, proposal: Any) -> dict[str, dict[str, Any]]:
        self._check_known(proposal["value"])
        offered, given = self.method.settings.offered, proposal["value"]
        try:
            return {name: _options(offered[name](**given.get(name, {}))) for name in self.offered}
        except ValidationError as error:
            raise SettingsError(f"hyperparameters of the terms: {error}") from None

    @traitlets.observe("weights", "options", "temperature")
    def _apply(self, _change: Any) -> None:
        self.method.settings = self._settings(self.weights)

    def _settings(self, weights: Mapping[str, float]) -> Any:
        config = self.method.settings
        terms = {
            name: config.offered[name](**self.options.get(name, {}), weight=weights[name])
            for name in dict.fromkeys((*config.terms, *self.offered))
            if weights.get(name, 0) > 0
        }
        return config.model_copy(update={"terms": terms, "temperature": self.temperature})

    @traitlets.observe("shape")
    def _reshape(self, _change: Any) -> None:
        """Draw points for the shape, unless the browser has sent some with it."""
        sent = self._sent(self.coordinates)
        if not self._fits(sent):
            return self.draw()
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
        """Take over rows of the browser from a step on, if it went on from the newest `past`."""
        news, descent = change["new"], self.descent
        if news["version"] != self.past["version"] or news["from"] > len(descent.history):
            self._show()  # Python has moved the points meanwhile, or steps are missing
            return
        descent.points, descent.sphere = self._sent(self.coordinates), self.shape == "sphere"
        if "start" in news:
            descent.trail = [self._sent(news["start"])]
        nan = float("nan")
        rows = [{key: nan if x is None else x for key, x in r.items()} for r in news["rows"]]
        descent.history[news["from"] :] = rows
        descent.trail = [descent.trail[0], descent.points]
        self.acknowledged = news["message"]

    def answer(self, question: dict[str, Any]) -> None:
        """Send a view all steps, or terms that the browser does not know, at its points."""
        if question["do"] == "past":
            past = {**self.descent.past(), "version": self.past["version"]}
            return self.send({"view": question["view"], "past": past})
        with self._using(self._settings(dict.fromkeys(question["terms"], 1.0))):
            terms = self.descent.slopes(self._sent(question["points"]), question["step"])
        self.send({"id": question["id"], "terms": terms})


def _options(config: TermConfig) -> dict[str, Any]:
    return config.model_dump(mode="json", exclude={"weight"})
