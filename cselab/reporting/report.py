"""The report of a store: its tables and figures as HTML, Markdown and CSV."""

import html
import json
from collections.abc import Sequence
from pathlib import Path

import pandas
import plotly.graph_objects as go

from cselab.headless.page import place_figure, write_html
from cselab.plots.figures import difference_chart, energy_chart, name_rows, score_heatmap
from cselab.plots.theme import use_theme
from cselab.reporting.tables import Tables, read_tables
from cselab.reporting.texts import markdown, plain

TITLES = {
    "claims": "Claims",
    "scores": "Test scores",
    "prose": "Test scores without captions",
    "phenomena": "Phenomena of the synthetic text",
    "geometry": "Geometry, and energy of [CLS]",
    "transfer": "Transfer, accuracy × 100",
}


def write_report(
    store: Path,
    folder: Path,
    *,
    against: str | None = None,
    only: Sequence[str] = ("*",),
    claims: Path | None = None,
) -> Path:
    """Write `index.html`, `report.md` and `tables/*.csv` of a store to a folder.

    Args:
        store: As in `read_tables`.
        folder: The folder, where an earlier report is replaced.
        against: As in `read_tables`.
        only: As in `read_tables`.
        claims: As in `read_tables`.

    Returns:
        Path of the page.

    Raises:
        DataError: As `read_tables`.
    """
    use_theme()
    tables = read_tables(store, against=against, only=only, claims=claims)
    (folder / "tables").mkdir(parents=True, exist_ok=True)
    for name in TITLES:  # those of an earlier report may be more
        (folder / "tables" / f"{name}.csv").unlink(missing_ok=True)
    for name, table in tables.numbers.items():
        table.round(4).to_csv(folder / "tables" / f"{name}.csv")
    tables.rows.to_csv(folder / "tables" / "rows.csv", index=False)
    (folder / "report.md").write_text(_markdown(tables), encoding="utf-8")
    return _page(folder / "index.html", tables, _figures(tables))


def _figures(tables: Tables) -> dict[str, go.Figure]:
    figures, measures = {}, set(tables.rows.measure)
    scores = tables.numbers["scores"].rename(index=_as_label)
    names = {name: tables.rows[name].map(_as_label) for name in ("label", "method", "task")}
    rows = tables.rows.assign(**names)
    if scores.difference.notna().any():
        baseline = _as_label(tables.against)
        figures["Differences"] = difference_chart({"paired by seed": scores}, baseline)
    if "test" in measures:
        figures["Every seed"] = _seeds(rows)
    if "phenomena" in tables.numbers:
        phenomena = tables.numbers["phenomena"].rename(index=_as_label).T.to_dict()
        figures["Scores by phenomenon"] = score_heatmap(
            phenomena, x_title="what was changed in a pair of the synthetic STS"
        )
    if "energy" in measures:
        figures["Energy of [CLS] and scores"] = energy_chart(rows)
    return figures


def _as_label(text: str) -> str:
    """A text for a figure, in which tags are shown as text."""
    return html.escape(text, quote=False)


def _seeds(scores: pandas.DataFrame) -> go.Figure:
    """Each run's test average as a point, a label a row."""
    averages = scores[(scores.measure == "test") & (scores.task == "average")]
    labels = list(dict.fromkeys(averages.label))
    figure = go.Figure()
    for place, label in enumerate(labels):
        runs = averages[averages.label == label]
        figure.add_scatter(
            x=runs.value,
            y=[place] * len(runs),
            mode="markers",
            name=label,
            showlegend=False,
            text=[f"seed {seed}" for seed in runs.seed],
            marker=dict(color="#0072B2", size=9, opacity=0.6),
        )
    name_rows(figure, labels)
    return figure.update_layout(
        xaxis_title="test average, Spearman × 100: a point a seed", height=190 + 34 * len(labels)
    )


def _explained(against: str) -> str:
    return (
        f"Spearman × 100, means over seeds; difference: from {against}, seed by seed, with its "
        "95 % t interval; p of the paired t test, and after Holm's correction for all rows. "
        "Checkpoints were picked on dev; nothing was chosen on a test."
    )


def _markdown(tables: Tables) -> str:
    lines = ["# Report of a sweep", "", plain(_explained(tables.against)), ""]
    for name, table in tables.texts.items():
        lines += [f"## {TITLES[name]}", "", markdown(table), ""]
    return "\n".join(
        [*lines, "## Conditions", "", *(f"- {plain(note)}" for note in tables.notes), ""]
    )


def _page(target: Path, tables: Tables, figures: dict[str, go.Figure]) -> Path:
    body = [
        "<main><h1>Report of a sweep</h1>",
        f"<p class='soft'>{html.escape(_explained(tables.against))}</p>",
    ]
    for name, table in tables.texts.items():
        with pandas.option_context("display.max_colwidth", None):
            shown = table.to_html(border=0, classes="numbers")
        body += [f"<h2>{TITLES[name]}</h2>", f"<div class='scroll'>{shown}</div>"]
        body.append(f"<p class='soft'><a href='tables/{name}.csv'>{name}.csv</a></p>")
    drawn = [json.loads(figure.to_json()) for figure in figures.values()]
    for number, (title, figure) in enumerate(zip(figures, drawn, strict=True)):
        body += [f"<h2>{title}</h2>", place_figure(figure, number)]
    notes = [f"<p>{html.escape(note)}</p>" for note in tables.notes]
    body += ["<h2>Conditions</h2>", *notes, "</main>"]
    write_html(target, "cselab: report of a sweep", "".join(body), drawn)
    return target
