"""What a run shows, at the top of its page: the main methods with their intervals."""

import html
import math
import statistics
from collections.abc import Sequence
from typing import Any

MAIN = ("untrained (cls)", "SimCSE, tower I", "SimCSE, I + II", "TNCSE", "JTCSE")
"""Names that the notebooks record; none is made from a later one."""
NEXT = {
    "02_twin_pretraining": "how the towers were trained, in a loop of twenty lines",
    "03_jtcse_training": "what the norm constraint and cross-attention add",
    "04_loss_ablations": "which gaps are larger than another seed's",
    "11_loss_playground": "train a loss of your own and put it beside these",
}


def headline(rows: Sequence[dict[str, Any]], finished: Sequence[str]) -> str:
    """A drawing of the main methods' scores and a list of what to open next.

    Args:
        rows: Rows of the run's results.
        finished: Stems of notebooks.

    Returns:
        HTML; nothing if fewer than two of the methods were scored.
    """
    rows = [row for row in rows if _has_interval(row)]
    points = {name: point for name in MAIN if (point := _average(rows, name))}
    if len(points) < 2:
        return ""
    links = "".join(
        f"<li><a href='{stem}.html'>{stem[:2]}</a>: {html.escape(text)}</li>"
        for stem, text in NEXT.items()
        if stem in finished
    )
    tasks = {row["task"] for row in rows if row["method"] in points}
    of = f"the average of {len(tasks)} tests" if len(tasks) > 1 else f"the test {min(tasks)}"
    return (
        f"<h2>What this run shows</h2>{_drawing(points)}"
        f"<p class='soft'>Spearman × 100 on {html.escape(of)}, with 95 % bootstrap intervals over "
        "test pairs, for one seed. Tower I starts from the untrained encoder, TNCSE and JTCSE from "
        "the two towers of the sum. Intervals of two methods that overlap may still hide a "
        "difference, which notebook 07 tests pair by pair."
        "</p>" + (f"<p>Open next:</p><ul>{links}</ul>" if links else "")
    )


def _has_interval(row: dict[str, Any]) -> bool:
    low, high = row["low"], row["high"]
    return None not in (low, high) and math.isfinite(row["score"] + low + high)


def _average(rows: Sequence[dict[str, Any]], name: str) -> tuple[float, float, float] | None:
    """Mean of a method's tests, with its interval: the tests are independent samples of pairs."""
    own = [row for row in rows if row["method"] == name]
    if not own:
        return None
    tests = {row["task"]: row for row in own if row["seed"] == own[0]["seed"]}.values()
    mean = statistics.fmean(row["score"] for row in tests)
    half = math.hypot(*((row["high"] - row["low"]) / 2 for row in tests)) / len(tests)
    return mean, mean - half, mean + half


def _drawing(points: dict[str, tuple[float, float, float]]) -> str:
    """Points with whiskers on a common axis, as SVG."""
    low = math.floor(min(p[1] for p in points.values()) - 0.5)
    high = math.ceil(max(p[2] for p in points.values()) + 0.5)
    left, width, line = 150, 640, 34
    height = line * len(points) + 40

    def x(value: float | int) -> float:
        return left + (value - low) / (high - low) * (width - left - 60)

    step = max(1, round((high - low) / 6))
    parts = [
        f"<line class='grid' x1='{x(v):.1f}' x2='{x(v):.1f}' y1='4' y2='{height - 28}'/>"
        f"<text class='tick' x='{x(v):.1f}' y='{height - 10}' text-anchor='middle'>{v}</text>"
        for v in range(low, high + 1, step)
    ]
    for place, (name, (mean, least, most)) in enumerate(points.items()):
        y = line * place + 22
        parts.append(
            f"<text x='{left - 12}' y='{y + 5}' text-anchor='end'>{html.escape(name)}</text>"
            f"<line class='whisker' x1='{x(least):.1f}' x2='{x(most):.1f}' y1='{y}' y2='{y}'/>"
            f"<circle class='point' cx='{x(mean):.1f}' cy='{y}' r='6'/>"
            f"<text x='{x(most) + 10:.1f}' y='{y + 5}'>{mean:.1f}</text>"
        )
    label = "Scores of the main methods with intervals"
    return (
        f"<svg class='headline' viewBox='0 0 {width} {height}' role='img' aria-label='{label}'>"
        f"{''.join(parts)}</svg>"
    )
