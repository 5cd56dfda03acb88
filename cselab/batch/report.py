"""The index page of a run: what ran, how it ended, and the scores."""

import html
import json
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cselab.batch.page import write_html
from cselab.batch.progress import clock


@dataclass(frozen=True)
class Outcome:
    """How one notebook ended. `failure` is empty when it finished."""

    stem: str
    title: str
    seconds: float
    failure: str = ""


def write_index(folder: Path, outcomes: Sequence[Outcome], parameters: dict[str, str]) -> Path:
    """Write `folder/index.html` and return its path."""
    failed = sum(bool(outcome.failure) for outcome in outcomes)
    rows = read_rows(folder)
    head = f"{len(outcomes) - failed} of {len(outcomes)} notebooks finished" + (f", {failed} failed" if failed else "")
    body = [
        f"<main><h1>cselab run {html.escape(folder.name)}</h1>",
        f"<p>{head}, {clock(sum((outcome.seconds for outcome in outcomes), 0.0))} in all.</p>",
        _notebooks(outcomes),
        "<h2>Scores</h2>",
        *(_scores(rows) if rows else ["<p class='soft'>No notebook of this run recorded a score.</p>"]),
        "<h2>Conditions</h2>",
        _conditions(parameters, rows),
        "</main>",
    ]
    write_html(folder / "index.html", f"cselab run {folder.name}", "".join(body))
    return folder / "index.html"


def read_rows(folder: Path) -> list[dict[str, Any]]:
    """The run's result rows, one a method, task and seed: a row recorded again by a later notebook replaces the first."""
    path = folder / "results.jsonl"
    if not path.is_file():
        return []
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    return list({(row["method"], row["task"], row["seed"], row["settings"]): row for row in rows}.values())


def _notebooks(outcomes: Sequence[Outcome]) -> str:
    lines = []
    for outcome in outcomes:
        state = (
            f"<span class='failed'>failed: {html.escape(outcome.failure)}</span>"
            if outcome.failure
            else "<span class='passed'>finished</span>"
        )
        links = f"<a href='{outcome.stem}.ipynb'>notebook</a> · <a href='{outcome.stem}.log'>log</a>"
        lines.append(
            f"<tr><td><a href='{outcome.stem}.html'>{html.escape(outcome.title)}</a></td><td>{state}</td>"
            f"<td class='number'>{clock(outcome.seconds)}</td><td>{links}</td></tr>"
        )
    return (
        f"<table><tr><th>notebook</th><th>state</th><th class='number'>time</th><th></th></tr>{''.join(lines)}</table>"
    )


def _scores(rows: list[dict[str, Any]]) -> list[str]:
    tasks = list(dict.fromkeys(row["task"] for row in rows))
    methods = list(dict.fromkeys(row["method"] for row in rows))
    cells = {
        (method, task): [row["score"] for row in rows if (row["method"], row["task"]) == (method, task)]
        for method in methods
        for task in tasks
    }
    means = {key: statistics.fmean(values) for key, values in cells.items() if values}
    best = {task: max(means[m, task] for m in methods if (m, task) in means) for task in tasks}
    columns = "".join(f"<th class='number'>{html.escape(task)}</th>" for task in tasks)
    average = "<th class='number'>average</th>" if len(tasks) > 1 else ""
    lines = []
    for method in methods:
        line = [_cell(cells[method, task], best[task]) for task in tasks]
        if average:
            complete = all((method, task) in means for task in tasks)
            line.append(_cell([statistics.fmean(means[method, task] for task in tasks)] if complete else [], None))
        lines.append(f"<tr><td>{html.escape(method)}</td>{''.join(line)}</tr>")
    note = "Spearman × 100, all subsets of a task together, on the test split; bold is the best of its column, which is no test."
    return [
        f"<div class='scroll'><table><tr><th>method</th>{columns}{average}</tr>{''.join(lines)}</table></div>",
        f"<p class='soft'>{note} Rows with intervals, seeds and versions: <a href='results.jsonl'>results.jsonl</a>.</p>",
    ]


def _cell(values: list[float], best: float | None) -> str:
    if not values:
        return "<td class='number soft'>–</td>"
    mean = statistics.fmean(values)
    spread = f" ± {statistics.stdev(values):.2f}" if len(values) > 1 else ""
    return f"<td class='number{' best' if mean == best else ''}'>{mean:.2f}{spread}</td>"


def _conditions(parameters: dict[str, str], rows: list[dict[str, Any]]) -> str:
    facts = dict(parameters) or {"parameters": "the notebooks' own"}
    for key in ("profile", "seed", "hardware", "python", "torch", "transformers", "cselab", "commit", "data_source"):
        values = sorted({str(row[key]) for row in rows if row.get(key) not in (None, "")})
        if values and key not in parameters:
            facts[key.replace("_", " ")] = ", ".join(values)
    lines = (f"<tr><th>{html.escape(key)}</th><td>{html.escape(value)}</td></tr>" for key, value in facts.items())
    return f"<table>{''.join(lines)}</table>"
