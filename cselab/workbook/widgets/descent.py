"""Gradient descent on points: what the loss playground does in Python."""

import math
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

import numpy as np
import torch
from torch import Tensor

from cselab.evaluation import alignment, uniformity
from cselab.methods import Method, StepContext

Points = dict[str, Tensor]
"""By space: two views of N sentences, (2, N, size)."""
Row = dict[str, float | int]
"""Of the history."""
COINS = 1000
"""Steps after which JTCSE's coins repeat."""


@cache
def coins(seed: int) -> str:
    """The coin of each step, "1" or "0": the browser cannot toss Python's."""
    return "".join(str(int(StepContext.at(seed, step).coin)) for step in range(COINS))


def random_points(spaces: tuple[str, ...], sentences: int, size: int, seed: int) -> Points:
    """Points around a random centre for each sentence, spread as widely as the centres.

    Args:
        spaces: Names of the method's spaces.
        sentences: N.
        size: Dimensions.
        seed: Seed of the points.

    Returns:
        By space, (2, N, size): two views.
    """
    random = torch.Generator().manual_seed(seed)
    centre = torch.randn(sentences, size, generator=random)
    return {space: centre + torch.randn(2, sentences, size, generator=random) for space in spaces}


@dataclass
class Descent:
    """Points that move down the gradient of a method's loss.

    Attributes:
        rate: Step size.
        sphere: Whether lengths stay 1.
        coins: Coin of each step.
        history: A row a step, with the weighted terms.
        trail: The points of each step.
    """

    method: Method
    points: Points
    rate: float
    sphere: bool
    seed: int
    coins: str
    history: list[Row] = field(default_factory=list)
    trail: list[Points] = field(default_factory=list)

    def __post_init__(self):
        if not self.history:
            self.restart(self.points)

    def restart(self, points: Points) -> None:
        """Begin anew from `points`."""
        self.points = self._placed(points)
        self.history, self.trail = [], [self.points]
        self.history.append(self.measure())

    def descend(self, steps: int) -> None:
        """Move the points by so many steps, if a term has a weight."""
        for _ in range(steps):
            gradients = self.gradients()
            if gradients is None:
                return
            moved = {name: x - self.rate * gradients[name] for name, x in self.points.items()}
            self.points = self._placed(moved)
            self.history.append(self.measure())
            self.trail.append(self.points)

    def descended(self, steps: int) -> "Descent":
        """A copy that is `steps` steps further."""
        copy = replace(self, history=[*self.history], trail=[*self.trail])
        copy.descend(steps)
        return copy

    def gradients(self) -> Points | None:
        """The gradient of the loss on each point, by space; None without a term."""
        points = {space: rows.clone().requires_grad_() for space, rows in self.points.items()}
        loss = sum(self.losses(points, len(self.history) - 1).values())
        if not isinstance(loss, Tensor):
            return None
        found = torch.autograd.grad(loss, list(points.values()), materialize_grads=True)
        return dict(zip(points, found, strict=True))

    def slopes(self, points: Points, step: int) -> dict[str, dict[str, Any]]:
        """Value and gradients of each weighted term at some points, as JSON.

        Args:
            points: Points by space, (2, N, size).
            step: Step of the loss's coin and random numbers.
        """
        given = [rows.clone().requires_grad_() for rows in points.values()]
        values = self.losses(dict(zip(points, given, strict=True)), step)
        options = {"retain_graph": True, "materialize_grads": True}
        return {
            name: {
                "value": as_json(value.item()),
                "gradients": [
                    as_json(x.tolist()) for x in torch.autograd.grad(value, given, **options)
                ],
            }
            for name, value in values.items()
        }

    def losses(self, points: Points, step: int) -> dict[str, Tensor]:
        """The weighted terms at some points."""
        return self.method.compare(self.method.placed(list(points.values())), self.context(step))

    def context(self, step: int) -> StepContext:
        """What a loss may know about a step."""
        return StepContext(seed=self.seed, step=step, coin=self.coins[step % COINS] == "1")

    def measure(self) -> Row:
        """A row of the history: geometry, mean lengths and weighted terms of the points."""
        a, b = (torch.cat([rows[view] for rows in self.points.values()]) for view in range(2))
        lengths = {f"‖{space}‖": rows.norm(dim=-1).mean() for space, rows in self.points.items()}
        values = {"alignment": alignment(a, b), "uniformity": uniformity(a), **lengths}
        step = len(self.history)
        values |= self.losses(self.points, step)
        return {"step": step} | {name: x.item() for name, x in values.items()}

    def _placed(self, points: Points) -> Points:
        if not self.sphere:
            return points
        return {space: rows / rows.norm(dim=-1, keepdim=True) for space, rows in points.items()}


def as_json(value: Any) -> Any:
    """Numbers in lists and dictionaries as JSON has them: None for those that are not finite."""
    if isinstance(value, dict):
        return {key: as_json(one) for key, one in value.items()}
    if isinstance(value, list):
        return [as_json(one) for one in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def as_lists(points: Points, digits: int | None = None) -> dict[str, list]:
    """Points as JSON.

    Args:
        points: Points by space, (2, N, size).
        digits: Digits after rounding; None: no rounding.
    """
    if digits is not None:
        points = {name: rows.double().round(decimals=digits) for name, rows in points.items()}
    return {space: as_json(rows.tolist()) for space, rows in points.items()}


def as_points(
    lists: dict[str, list], spaces: tuple[str, ...], dtype: torch.dtype = torch.float64
) -> Points:
    """Points of JSON; None is NaN.

    Args:
        lists: Points as lists, by space.
        spaces: Names of the spaces, in the method's order.
        dtype: Type of the points' numbers.
    """
    arrays = {space: np.array(lists[space], dtype=float) for space in spaces}
    return {space: torch.from_numpy(rows).to(dtype) for space, rows in arrays.items()}


def thinned(rows: list, most: int) -> list:
    """Some of the rows, in equal strides; the last one stays.

    Args:
        rows: The rows to thin.
        most: Most rows that stay.
    """
    return rows[:: -max(1, math.ceil(len(rows) / most))][::-1]
