"""Index page of a run: notebooks, outcomes and scores."""

import functools
import json
import math
import statistics
import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

import plotly.graph_objects as go
from pydantic import BaseModel, ConfigDict, FiniteFloat, ValidationError

from cselab.machine import clock
from cselab.workbook.chapters import by_part
from cselab.workbook.headless.page import address, place_figure, write_html
from cselab.workbook.templates import templates

VERSIONS = ("python", "torch", "transformers", "cselab", "commit")
MOST = 6
"""Number of methods in the headline."""
AGAIN = 5
"""Seconds after which the index of a run that goes on is read again."""
CONDITIONS = ("profile", "seed", "hardware", *VERSIONS, "data_source")


@dataclass(frozen=True)
class Outcome:
    """Outcome of one notebook: `failure` is empty if it finished; `stopped` says what the cells
    need that it left out (`cselab.errors.Stopped`)."""

    stem: str
    title: str
    seconds: FiniteFloat
    failure: str = ""
    stopped: str = ""


class _Row(BaseModel):
    """Columns that the index reads of a row of results.jsonl, which has more."""

    model_config = ConfigDict(extra="allow")
    method: str
    task: str
    score: float
    low: float | None = None
    high: float | None = None
    seed: Any = None
    settings: Any = None
    notebook: Any = None


def write_index(
    folder: Path,
    titles: Mapping[str, str],
    outcomes: Mapping[str, Outcome],
    parameters: dict[str, str],
    *,
    running: Collection[str] = (),
    goes_on: bool = False,
) -> Path:
    """Write `folder/index.html` of a run's folder and return its path.

    Args:
        titles: By stem, of all notebooks of the run.
        outcomes: By stem, of those that have ended.
        running: Stems of those that run now; all others wait.
        goes_on: The run has not ended: the page is read again by itself.
    """
    damaged: list[str] = []
    rows = read_rows(folder, say=damaged.append)
    for line in damaged:
        _say_once(line)
    columns, scores = _score_table(rows)
    top = None if goes_on else headline(rows)
    body = (
        templates(Path(__file__).parent)
        .get_template("index.html.j2")
        .render(
            name=folder.name,
            parts=by_part(titles),
            titles=titles,
            outcomes=outcomes,
            running=running,
            goes_on=goes_on,
            failed=sum(bool(outcome.failure) for outcome in outcomes.values()),
            total=clock(sum(outcome.seconds for outcome in outcomes.values())),
            headline=top,
            damaged=damaged,
            columns=columns,
            scores=scores,
            conditions=_conditions(parameters, rows),
            clock=clock,
            address=address,
            place_figure=place_figure,
            exists=lambda name: (folder / name).is_file(),
        )
    )
    target = folder / "index.html"
    figures, again = [top[0]] if top else [], AGAIN if goes_on else None
    write_html(target, f"cselab run {folder.name}", body, figures, refresh=again)
    return target


def read_rows(folder: Path, say: Callable[[str], object] = print) -> list[dict[str, Any]]:
    """Result rows of a run, one per method, task and seed; the last notebook's row counts.

    `notebooks` of a row has the names of all notebooks that recorded one.

    Args:
        say: Called with one line if rows are damaged; they are left out.
    """
    path = folder / "results.jsonl"
    rows: dict[tuple[str, ...], dict[str, Any]] = {}
    damaged: list[str] = []
    try:
        lines = path.read_bytes().split(b"\n")
    except FileNotFoundError:
        return []
    except OSError as error:
        say(f"{path} cannot be read ({error.strerror}), so its scores are left out")
        return []
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            row = _Row.model_validate_json(line)
        except ValidationError:
            damaged.append(str(number))
            continue
        key = row.method, row.task, str(row.seed), str(row.settings)
        notebooks = {*rows.get(key, {}).get("notebooks", ()), str(row.notebook)}
        rows[key] = {**row.model_dump(), "notebooks": notebooks}
    if damaged:
        say(f"{path}: damaged rows are left out, line {', '.join(damaged):.60}")
    return list(rows.values())


@functools.cache
def _say_once(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


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


def _score_table(rows: list[dict[str, Any]]) -> tuple[list[str], dict[str, list[tuple[str, str]]]]:
    """Columns, and by method a text and a class for each; the average only of complete rows."""
    tasks = list(dict.fromkeys(row["task"] for row in rows))
    scores: dict[str, dict[str, list[float]]] = {}
    for row in rows:
        scores.setdefault(row["method"], {}).setdefault(row["task"], []).append(row["score"])
    means = {method: {t: _mean(v) for t, v in of.items()} for method, of in scores.items()}
    best = {
        task: max((of.get(task, math.nan) for of in means.values()), key=_rank) for task in tasks
    }
    table = {}
    for method, by_task in scores.items():
        table[method] = [_cell(by_task.get(task, []), best[task]) for task in tasks]
        if len(tasks) > 1:
            complete = len(by_task) == len(tasks)
            table[method].append(_cell([_mean(list(means[method].values()))] * complete, None))
    return [*tasks, *["average"] * (len(tasks) > 1)], table


def _rank(mean: float) -> float:
    return -math.inf if math.isnan(mean) else mean


def _mean(values: list[float]) -> float:
    """The mean; NaN if a score is not finite, as that of an encoder with equal vectors."""
    return statistics.fmean(values) if all(map(math.isfinite, values)) else math.nan


def _cell(values: list[float], best: float | None) -> tuple[str, str]:
    if not values:
        return "–", " soft"
    if math.isnan(mean := _mean(values)):
        return "NaN", ""
    spread = f" ± {statistics.stdev(values):.2f}" if len(values) > 1 else ""
    return f"{mean:.2f}{spread}", " best" if mean == best else ""


def _conditions(parameters: dict[str, str], rows: list[dict[str, Any]]) -> dict[str, str]:
    facts = dict(parameters) or {"parameters": "the notebooks' defaults"}
    for key in CONDITIONS:
        values = sorted({str(row[key]) for row in rows if row.get(key) not in (None, "")})
        if values and key not in parameters:
            facts[key.replace("_", " ")] = ", ".join(values)
    return facts
