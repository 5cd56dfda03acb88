"""The report of a sweep: the tables and figures of its store as HTML, Markdown and CSV."""

import json
from collections.abc import Sequence
from pathlib import Path

import pandas
import plotly.graph_objects as go

from cselab.study.tables import Tables, read_tables
from cselab.study.texts import markdown, plain
from cselab.workbook.headless.page import place_figure, write_html
from cselab.workbook.plots.figures import (
    difference_chart,
    energy_chart,
    escape_label,
    name_rows,
    score_heatmap,
)
from cselab.workbook.plots.theme import PALETTE, use_theme
from cselab.workbook.templates import templates

TITLES = {
    "claims": "Claims",
    "scores": "Test scores",
    "prose": "Test scores without captions",
    "changes": "Changes of meaning noticed, % of couples (50: not at all)",
    "geometry": "Geometry, and energy of [CLS]",
    "transfer": "Transfer, accuracy × 100",
    "senteval-transfer": "Transfer by SentEval's protocol, accuracy × 100",
    "csts": "C-STS, validation pairs",
}
EXPLAINED = (
    "Spearman × 100, means over seeds; difference: from {against}, seed by seed, with its 95 % t "
    "interval; p of the paired t test, and after Holm's correction for all rows. (Intervals of "
    "claims also count the choice of test pairs, where the store has resamples.) Checkpoints were "
    "picked on dev; nothing was chosen on a test."
)


def write_report(
    store: Path,
    folder: Path,
    *,
    against: str | None = None,
    only: Sequence[str] = ("*",),
    claims: Path | None = None,
) -> Path:
    """Write `index.html`, `report.md` and `tables/*.csv` of a store, in place of an earlier report.

    Args:
        store, against, only, claims: As in `read_tables`, whose errors it raises.

    Returns:
        Path of the page.
    """
    use_theme()
    tables = read_tables(store, against=against, only=only, claims=claims)
    (folder / "tables").mkdir(parents=True, exist_ok=True)
    for name in TITLES:  # those of an earlier report may be more
        (folder / "tables" / f"{name}.csv").unlink(missing_ok=True)
    for name, table in tables.numbers.items():
        table.round(4).to_csv(folder / "tables" / f"{name}.csv")
    tables.rows.to_csv(folder / "tables" / "rows.csv", index=False)
    values = {
        "titles": TITLES,
        "tables": tables,
        "explained": EXPLAINED.format(against=tables.against),
    }
    forms = templates(Path(__file__).parent)
    text = forms.get_template("sweep_report.md.j2").render(**values, markdown=markdown, plain=plain)
    (folder / "report.md").write_text(text, encoding="utf-8")
    figures = {title: json.loads(figure.to_json()) for title, figure in _figures(tables).items()}
    page = forms.get_template("sweep_report.html.j2")
    with pandas.option_context("display.max_colwidth", None):
        body = page.render(**values, figures=figures, place_figure=place_figure)
    target = folder / "index.html"
    write_html(target, "cselab: report of a sweep", body, list(figures.values()))
    return target


def _figures(tables: Tables) -> dict[str, go.Figure]:
    """Figures by their titles."""
    figures, measures = {}, set(tables.rows.measure)
    scores = tables.numbers["scores"].rename(index=escape_label)
    names = {name: tables.rows[name].map(escape_label) for name in ("label", "method", "task")}
    rows = tables.rows.assign(**names)
    if scores.difference.notna().any():
        baseline = escape_label(tables.against)
        figures["Differences"] = difference_chart({"paired by seed": scores}, baseline)
    if "test" in measures:
        figures["Every seed"] = _seeds(rows)
    if "changes" in tables.numbers:
        noticed = tables.numbers["changes"].rename(index=escape_label).T.to_dict()
        figures["Changes of meaning noticed"] = score_heatmap(
            noticed, x_title="what was changed", score="% of couples ranked rightly"
        )
    if "energy" in measures:
        figures["Energy of [CLS] and scores"] = energy_chart(rows)
    return figures


def _seeds(scores: pandas.DataFrame) -> go.Figure:
    """Each run's test average as a point, a label a row."""
    averages = scores[(scores.measure == "test") & (scores.task == "average")]
    labels = list(averages.label.unique())
    figure = go.Figure().add_scatter(
        x=averages.value,
        y=averages.label.map(labels.index),
        mode="markers",
        text=averages.label + ", seed " + averages.seed.map(str),
        marker=dict(color=PALETTE[0], size=9, opacity=0.6),
    )
    name_rows(figure, labels)
    return figure.update_layout(
        xaxis_title="test average, Spearman × 100: a point a seed", height=190 + 34 * len(labels)
    )
