"""The report of a store: its tables and figures as HTML, Markdown and CSV."""

import html
from collections.abc import Sequence
from pathlib import Path

import pandas
import plotly.graph_objects as go
from plotly.offline import get_plotlyjs

from cselab.batch.page import write_html
from cselab.sweep.tables import Tables, markdown, read_tables
from cselab.views.figures import difference_chart, energy_chart, name_rows, score_heatmap
from cselab.views.theme import use_theme


def write_report(
    store: Path, folder: Path, *, against: str | None = None, only: Sequence[str] = ("*",), claims: Path | None = None
) -> Path:
    """`index.html`, `report.md` and `tables/*.csv` in `folder`; gives the page's path. Arguments and errors as `read_tables`."""
    use_theme()
    tables = read_tables(store, against=against, only=only, claims=claims)
    (folder / "tables").mkdir(parents=True, exist_ok=True)
    for name, table in tables.numbers.items():
        table.round(4).to_csv(folder / "tables" / f"{name}.csv")
    tables.rows.to_csv(folder / "tables" / "rows.csv", index=False)
    (folder / "report.md").write_text(_markdown(tables), encoding="utf-8")
    return _page(folder / "index.html", tables, _figures(tables))


def _figures(tables: Tables) -> dict[str, go.Figure]:
    figures, measures = {}, set(tables.rows.measure)
    if tables.numbers["scores"].difference.notna().any():
        figures["Differences"] = difference_chart({"paired by seed": tables.numbers["scores"]}, tables.against)
    if "test" in measures:
        figures["Every seed"] = _seeds(tables.rows)
    if "phenomena" in tables.numbers:
        phenomena = tables.numbers["phenomena"].T.to_dict()
        figures["Where it comes from"] = score_heatmap(phenomena, x_title="what was changed in a pair of the world")
    if "energy" in measures:
        figures["Energy of [CLS] and scores"] = energy_chart(tables.rows)
    return figures


def _seeds(scores: pandas.DataFrame) -> go.Figure:
    """A point a run: its test average, by label."""
    averages = scores[(scores.measure == "test") & (scores.task == "average")]
    labels = list(dict.fromkeys(averages.label))
    figure = go.Figure()
    for label in labels:
        mine = averages[averages.label == label]
        figure.add_scatter(
            x=mine.value, y=[labels.index(label)] * len(mine), mode="markers", name=label, showlegend=False,
            text=[f"seed {seed}" for seed in mine.seed], marker=dict(color="#0072B2", size=9, opacity=0.6),
        )  # fmt: skip
    name_rows(figure, labels)
    return figure.update_layout(
        xaxis_title="test average, Spearman × 100: a point a seed", height=190 + 34 * len(labels)
    )


TITLES = {
    "claims": "Claims", "scores": "Test scores", "prose": "Test scores without captions",
    "phenomena": "Phenomena of the generated world", "geometry": "Geometry, and energy of [CLS]", "transfer": "Transfer, accuracy × 100",
}  # fmt: skip


def _explained(against: str) -> str:
    return (
        f"Spearman × 100, means over seeds; difference: from {against}, seed by seed, with its 95 % t interval; p of the sign-flip "
        "permutation test, and after Holm's correction for all rows. Checkpoints were picked on dev; nothing was chosen on a test."
    )


def _markdown(tables: Tables) -> str:
    lines = ["# Report of a sweep", "", _explained(tables.against), ""]
    for name, table in tables.texts.items():
        lines += [f"## {TITLES[name]}", "", markdown(table), ""]
    return "\n".join([*lines, "## Conditions", "", *(f"- {note}" for note in tables.notes), ""])


def _page(target: Path, tables: Tables, figures: dict[str, go.Figure]) -> Path:
    body = [
        "<main><h1>Report of a sweep</h1>",
        f"<p class='soft'>{html.escape(_explained(tables.against))}</p>",
    ]
    for name, table in tables.texts.items():
        body += [f"<h2>{TITLES[name]}</h2>", f"<div class='scroll'>{table.to_html(border=0, classes='numbers')}</div>"]
        body.append(f"<p class='soft'><a href='tables/{name}.csv'>{name}.csv</a></p>")
    for title, figure in figures.items():
        body += [
            f"<h2>{title}</h2>",
            figure.to_html(full_html=False, include_plotlyjs=False, config={"displaylogo": False}),
        ]
    body += ["<h2>Conditions</h2>", *(f"<p>{html.escape(note)}</p>" for note in tables.notes), "</main>"]
    write_html(target, "cselab: report of a sweep", "".join(body), f"<script>{get_plotlyjs()}</script>")
    return target
