"""Index page of a run: notebooks, outcomes and scores."""

import html
import json
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cselab.errors import DataError
from cselab.headless.headline import headline
from cselab.headless.page import write_html
from cselab.headless.progress import clock


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
    seconds: float
    failure: str = ""


def write_index(folder: Path, outcomes: Sequence[Outcome], parameters: dict[str, str]) -> Path:
    """Write `folder/index.html` and return its path.

    Args:
        folder: Folder of the run.
        outcomes: Outcomes of its notebooks.
        parameters: Texts by name, as typed.
    """
    failed = sum(bool(outcome.failure) for outcome in outcomes)
    rows = read_rows(folder)
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
        _notebooks(outcomes),
        "<h2>All scores</h2>",
        *(_scores(rows) if rows else no_scores),
        "<h2>Conditions</h2>",
        _conditions(parameters, rows),
        "</main>",
    ]
    write_html(folder / "index.html", f"cselab run {folder.name}", "".join(body))
    return folder / "index.html"


def read_rows(folder: Path) -> list[dict[str, Any]]:
    """Result rows of a run, one per method, task and seed; the last notebook's row counts.

    Raises:
        DataError: For a damaged line.
    """
    path = folder / "results.jsonl"
    if not path.is_file():
        return []
    try:
        rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    except ValueError as error:
        raise DataError(f"{path} is damaged ({error}); remove the line that is cut off") from None
    keys = ("method", "task", "seed", "settings")
    return list({tuple(row[key] for key in keys): row for row in rows}.values())


def _notebooks(outcomes: Sequence[Outcome]) -> str:
    lines = []
    for outcome in outcomes:
        state = "<span class='passed'>finished</span>"
        if outcome.failure:
            state = f"<span class='failed'>failed: {html.escape(outcome.failure)}</span>"
        stem, title = outcome.stem, html.escape(outcome.title)
        lines.append(
            f"<tr><td><a href='{stem}.html'>{title}</a></td><td>{state}</td><td "
            f"class='number'>{clock(outcome.seconds)}</td><td><a href='{stem}.ipynb'>notebook</a> "
            f"· <a href='{stem}.log'>log</a></td></tr>"
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
    means = {key: statistics.fmean(values) for key, values in cells.items() if values}
    best = {task: max(means[m, task] for m in methods if (m, task) in means) for task in tasks}
    columns = "".join(f"<th class='number'>{html.escape(task)}</th>" for task in tasks)
    average = "<th class='number'>average</th>" if len(tasks) > 1 else ""
    lines = []
    for method in methods:
        line = [_cell(cells[method, task], best[task]) for task in tasks]
        if average:
            values = [means[method, task] for task in tasks if (method, task) in means]
            complete = len(values) == len(tasks)
            line.append(_cell([statistics.fmean(values)] if complete else [], None))
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


def _cell(values: list[float], best: float | None) -> str:
    if not values:
        return "<td class='number soft'>–</td>"
    mean = statistics.fmean(values)
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
