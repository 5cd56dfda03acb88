"""The top of a run's page: the methods that most of its notebooks compare, with intervals."""

import json
import math
import statistics
from collections.abc import Sequence
from html import escape
from typing import Any

import plotly.graph_objects as go

MOST = 6
"""Number of methods that are shown."""


def headline(rows: Sequence[dict[str, Any]]) -> tuple[dict, str] | None:
    """plotly's JSON of the methods' scores, and the tests that these are of.

    Args:
        rows: Rows of `read_rows`.

    Returns:
        None if fewer than two methods have scores with intervals of one test.
    """
    rows = [row for row in rows if _has_interval(row)]
    notebooks: dict[str, set[str]] = {}
    tasks: dict[str, set[str]] = {}
    for row in rows:
        notebooks.setdefault(row["method"], set()).update(row["notebooks"])
        tasks.setdefault(row["method"], set()).add(row["task"])
    chosen = sorted(notebooks, key=lambda method: -len(notebooks[method]))[:MOST]
    shared = set.intersection(*(tasks[method] for method in chosen)) if chosen else set()
    if len(chosen) < 2 or not shared:
        return None
    rows = [row for row in rows if row["task"] in shared]
    points = {name: _average(rows, name) for name in notebooks if name in chosen}
    test = f"the average of {len(shared)} tests" if len(shared) > 1 else f"the test {min(shared)}"
    means, halves = zip(*points.values(), strict=True)
    figure = go.Figure(layout=dict(template="plotly_white", height=110 + 36 * len(points)))
    figure.add_scatter(
        x=means,
        y=[escape(name, quote=False) for name in points],  # plotly reads tags
        mode="markers+text",
        text=[f"{mean:.1f}" for mean in means],
        textposition="top center",
        marker=dict(size=10, color="#0072B2"),
        error_x=dict(array=halves),
    )
    figure.update_yaxes(autorange="reversed", automargin=True)
    figure.update_layout(xaxis_title="Spearman × 100", margin=dict(t=20, b=50))
    return json.loads(figure.to_json()), test


def _has_interval(row: dict[str, Any]) -> bool:
    low, high = row["low"], row["high"]
    return None not in (low, high) and math.isfinite(row["score"] + low + high)


def _average(rows: Sequence[dict[str, Any]], name: str) -> tuple[float, float]:
    """Mean of a method's tests for its first seed, and half of its interval: the tests are
    independent samples of pairs."""
    rows = [row for row in rows if row["method"] == name]
    tests = {row["task"]: row for row in rows if row["seed"] == rows[0]["seed"]}.values()
    half = math.hypot(*((row["high"] - row["low"]) / 2 for row in tests)) / len(tests)
    return statistics.fmean(row["score"] for row in tests), half
