"""Index page of a run: notebooks, outcomes and scores."""

import functools
import html
import math
import re
import statistics
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, FiniteFloat, ValidationError

from cselab.machine import clock
from cselab.workbook.headless.headline import headline
from cselab.workbook.headless.page import address, write_html


@dataclass(frozen=True)
class Outcome:
    """Outcome of one notebook.

    Attributes:
        stem: Stem of its file name.
        title: First heading of the notebook.
        seconds: Running time in seconds.
        failure: Empty if it finished.
    """

    stem: str
    title: str
    seconds: FiniteFloat
    failure: str = ""


class _Row(BaseModel):
    """What the index reads of a row of results.jsonl, which has more columns."""

    model_config = ConfigDict(extra="allow")
    method: str
    task: str
    score: float
    low: float | None = None
    high: float | None = None
    n: int = 0
    seed: Any = None
    settings: Any = None


def write_index(folder: Path, outcomes: Sequence[Outcome], parameters: dict[str, str]) -> Path:
    """Write `folder/index.html` and return its path.

    Args:
        folder: Folder of the run.
        outcomes: Outcomes of its notebooks.
        parameters: Texts by name, as typed.
    """
    failed = sum(bool(outcome.failure) for outcome in outcomes)
    damaged: list[str] = []
    rows = read_rows(folder, say=damaged.append)
    for line in damaged:
        _say_once(line)
    head = f"{len(outcomes) - failed} of {len(outcomes)} notebooks finished"
    if failed:
        head += f", {failed} failed"
    total = clock(sum((outcome.seconds for outcome in outcomes), 0.0))
    no_scores = ["<p class='soft'>No notebook of this run recorded a score.</p>"]
    body = [
        f"<main><h1>cselab run {html.escape(folder.name)}</h1>",
        f"<p>{head}; their times add up to {total}.</p>",
        headline(rows, [outcome.stem for outcome in outcomes if not outcome.failure]),
        "<h2>Notebooks</h2>",
        _notebooks(folder, outcomes),
        "<h2>All scores</h2>",
        *(f"<p class='failed'>{html.escape(line)}</p>" for line in damaged),
        *(_scores(rows) if rows else no_scores),
        "<h2>Conditions</h2>",
        _conditions(parameters, rows),
        "</main>",
    ]
    write_html(folder / "index.html", f"cselab run {folder.name}", "".join(body))
    return folder / "index.html"


def read_rows(folder: Path, say: Callable[[str], object] = print) -> list[dict[str, Any]]:
    """Result rows of a run, one per method, task and seed; the last notebook's row counts.

    Args:
        folder: Folder of the run.
        say: Called with one line if rows are damaged; they are left out.
    """
    path, rows = folder / "results.jsonl", {}
    damaged: list[str] = []
    try:
        lines = path.read_bytes().split(b"\n")
    except FileNotFoundError:
        return []
    except OSError as error:
        say(f"{path} cannot be read ({error.strerror}), so its scores are left out")
        return []
    for number, line in enumerate(lines, 1):
        # a whole row may follow one that was cut off
        starts = [0, *(found.start() for found in re.finditer(rb'(?<=.)\{"', line))]
        for start in starts if line.strip() else ():
            try:
                row = _Row.model_validate_json(line[start:])
            except ValidationError:
                damaged.append(str(number))
            else:
                rows[row.method, row.task, str(row.seed), str(row.settings)] = row.model_dump()
                break
    if damaged:
        numbers = ", ".join(dict.fromkeys(damaged))
        say(f"{path}: damaged rows are left out, line {numbers:.60}")
    return list(rows.values())


@functools.cache
def _say_once(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def _notebooks(folder: Path, outcomes: Sequence[Outcome]) -> str:
    def link(name: str, text: str) -> str:
        there = (folder / name).is_file()
        return f"<a href='{address(name)}'>{text}</a>" if there else text

    lines = []
    for outcome in outcomes:
        state = "<span class='passed'>finished</span>"
        if outcome.failure:
            state = f"<span class='failed'>failed: {html.escape(outcome.failure)}</span>"
        stem, title = outcome.stem, html.escape(outcome.title)
        lines.append(
            f"<tr><td>{link(f'{stem}.html', title)}</td><td>{state}</td><td "
            f"class='number'>{clock(outcome.seconds)}</td><td>{link(f'{stem}.ipynb', 'notebook')} "
            f"· {link(f'{stem}.log', 'log')}</td></tr>"
        )
    return (
        "<table><tr><th>notebook</th><th>state</th><th "
        f"class='number'>time</th><th></th></tr>{''.join(lines)}</table>"
    )


def _scores(rows: list[dict[str, Any]]) -> list[str]:
    tasks = list(dict.fromkeys(row["task"] for row in rows))
    methods = list(dict.fromkeys(row["method"] for row in rows))
    cells: dict[tuple[str, str], list[float]] = {(m, task): [] for m in methods for task in tasks}
    for row in rows:
        cells[row["method"], row["task"]].append(row["score"])
    means = {key: _mean(values) for key, values in cells.items() if values}
    finite = {key: mean for key, mean in means.items() if math.isfinite(mean)}
    best = {
        task: max((finite[m, task] for m in methods if (m, task) in finite), default=None)
        for task in tasks
    }
    columns = "".join(f"<th class='number'>{html.escape(task)}</th>" for task in tasks)
    average = "<th class='number'>average</th>" if len(tasks) > 1 else ""
    lines = []
    for method in methods:
        line = [_cell(cells[method, task], best[task]) for task in tasks]
        if average:
            values = [means[method, task] for task in tasks if (method, task) in means]
            complete = len(values) == len(tasks)
            line.append(_cell([_mean(values)] if complete else [], None))
        lines.append(f"<tr><td>{html.escape(method)}</td>{''.join(line)}</tr>")
    note = (
        "Spearman × 100 over all subsets of a task, on the test split. Bold: the best of a column, "
        "without a significance test."
    )
    return [
        f"<div class='scroll'><table><tr><th>method</th>{columns}{average}</tr>"
        f"{''.join(lines)}</table></div>",
        f"<p class='soft'>{note} Rows with intervals, seeds and versions: <a "
        "href='results.jsonl'>results.jsonl</a>.</p>",
    ]


def _mean(values: list[float]) -> float:
    """The mean; NaN if a score is not finite, as that of an encoder with equal vectors."""
    return statistics.fmean(values) if all(map(math.isfinite, values)) else math.nan


def _cell(values: list[float], best: float | None) -> str:
    if not values:
        return "<td class='number soft'>–</td>"
    if math.isnan(mean := _mean(values)):
        return "<td class='number'>NaN</td>"
    spread = f" ± {statistics.stdev(values):.2f}" if len(values) > 1 else ""
    return f"<td class='number{' best' if mean == best else ''}'>{mean:.2f}{spread}</td>"


def _conditions(parameters: dict[str, str], rows: list[dict[str, Any]]) -> str:
    facts = dict(parameters) or {"parameters": "the notebooks' defaults"}
    for key in (
        "profile",
        "seed",
        "hardware",
        "python",
        "torch",
        "transformers",
        "cselab",
        "commit",
        "data_source",
    ):
        values = sorted({str(row[key]) for row in rows if row.get(key) not in (None, "")})
        if values and key not in parameters:
            facts[key.replace("_", " ")] = ", ".join(values)
    lines = (
        f"<tr><th>{html.escape(key)}</th><td>{html.escape(value)}</td></tr>"
        for key, value in facts.items()
    )
    return f"<table>{''.join(lines)}</table>"
