"""Gradient descent on points: what the loss playground does in Python."""

import math
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np
import torch
from torch import Tensor

from cselab.evaluation.geometry import alignment, uniformity
from cselab.methods import Method, StepContext

Points = dict[str, Tensor]
"""By space: two views of N sentences, (2, N, size)."""
Row = dict[str, float | int]
SHOWN_ROWS, SHOWN_TRAIL = 500, 60  # steps that the browser gets
COINS = 1000  # steps after which JTCSE's coins repeat


@cache
def coins(seed: int) -> str:
    """Toss JTCSE's coin for each step, "1" or "0": the browser cannot toss Python's."""
    return "".join(str(int(StepContext.at(seed, step).coin)) for step in range(COINS))


def random_points(spaces: tuple[str, ...], sentences: int, size: int, seed: int) -> Points:
    """Draw two views around a random centre for each sentence, spread as widely as the centres."""
    random = torch.Generator().manual_seed(seed)
    centre = torch.randn(sentences, size, generator=random)
    return {space: centre + torch.randn(2, sentences, size, generator=random) for space in spaces}


@dataclass
class Descent:
    """Points that move down the gradient of a method's loss."""

    method: Method
    points: Points
    rate: float
    sphere: bool  # lengths stay 1
    seed: int
    history: list[Row] = field(init=False)  # a row a step, with the weighted terms
    trail: list[Points] = field(init=False)  # the points of each step

    def __post_init__(self):
        self.restart(self.points)

    def restart(self, points: Points) -> None:
        """Begin anew from `points`."""
        self.points = self._on_shape(points)
        self.history, self.trail = [], [self.points]
        self.history.append(self.measure())

    def descend(self, steps: int) -> None:
        """Move the points by so many steps, if a term has a weight."""
        for _ in range(steps):
            gradients = self.gradients()
            if gradients is None:
                return
            moved = {name: x - self.rate * gradients[name] for name, x in self.points.items()}
            self.points = self._on_shape(moved)
            self.history.append(self.measure())
            self.trail.append(self.points)

    def gradients(self) -> Points | None:
        """Compute the loss's gradient on each point, by space; None without a term."""
        points = {space: rows.clone().requires_grad_() for space, rows in self.points.items()}
        loss = sum(self.losses(points, len(self.history) - 1).values())
        if not isinstance(loss, Tensor):
            return None
        slopes = torch.autograd.grad(loss, list(points.values()), materialize_grads=True)
        return dict(zip(points, slopes, strict=True))

    def slopes(self, points: Points, step: int) -> dict[str, dict[str, Any]]:
        """Compute value and gradients of each weighted term at some points, as JSON."""
        rows = [x.clone().requires_grad_() for x in points.values()]
        values = self.losses(dict(zip(points, rows, strict=True)), step)
        options = {"retain_graph": True, "materialize_grads": True}
        slopes = {name: torch.autograd.grad(x, rows, **options) for name, x in values.items()}
        return {
            name: as_json({"value": x.item(), "gradients": [one.tolist() for one in slopes[name]]})
            for name, x in values.items()
        }

    def losses(self, points: Points, step: int) -> dict[str, Tensor]:
        """Compute the weighted terms at some points, with the coin and random numbers of a step."""
        coin = coins(self.seed)[step % COINS] == "1"
        context = StepContext(seed=self.seed, step=step, coin=coin)
        return self.method.compare(self.method.placed(list(points.values())), context)

    def measure(self) -> Row:
        """Make a row of the history: geometry, mean lengths and weighted terms of the points."""
        a, b = (torch.cat([rows[view] for rows in self.points.values()]) for view in range(2))
        lengths = {f"‖{space}‖": rows.norm(dim=-1).mean() for space, rows in self.points.items()}
        values = {"alignment": alignment(a, b), "uniformity": uniformity(a), **lengths}
        step = len(self.history)
        values |= self.losses(self.points, step)
        return {"step": step} | {name: x.item() for name, x in values.items()}

    def past(self) -> dict[str, Any]:
        """Return start, points, history and trail as JSON for the browser, which gets a sample."""
        return {
            "start": as_lists(self.trail[0]),
            "points": as_lists(self.points),
            "rows": as_json(thinned(self.history, SHOWN_ROWS)),
            "trail": [as_lists(points, digits=4) for points in thinned(self.trail, SHOWN_TRAIL)],
        }

    def _on_shape(self, points: Points) -> Points:
        if not self.sphere:
            return points
        return {space: rows / rows.norm(dim=-1, keepdim=True) for space, rows in points.items()}


def as_json(value: Any) -> Any:
    """Replace what is not finite by None, as JSON has no such numbers."""
    if isinstance(value, dict):
        return {key: as_json(one) for key, one in value.items()}
    if isinstance(value, list):
        return [as_json(one) for one in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def as_lists(points: Points, digits: int | None = None) -> dict[str, list]:
    """Turn points into JSON, exactly or rounded to `digits`."""
    if digits is not None:
        points = {name: rows.double().round(decimals=digits) for name, rows in points.items()}
    return {space: as_json(rows.tolist()) for space, rows in points.items()}


def as_points(lists: dict[str, list], spaces: tuple[str, ...], dtype: torch.dtype) -> Points:
    """Read points from JSON, in the order of `spaces`; None is NaN."""
    arrays = {space: np.array(lists[space], dtype=float) for space in spaces}
    return {space: torch.from_numpy(rows).to(dtype) for space, rows in arrays.items()}


def thinned(rows: list, most: int) -> list:
    """Keep at most so many rows, in equal strides to the last one."""
    return rows[:: -max(1, math.ceil(len(rows) / most))][::-1]
