"""Tables and figures of a store: over seeds, with paired tests, ours beside the papers'; HTML, Markdown and CSV."""

import html
import json
from collections.abc import Sequence
from fnmatch import fnmatchcase
from pathlib import Path

import pandas
import plotly.graph_objects as go
from plotly.offline import get_plotlyjs

from cselab import reported
from cselab.batch.page import write_html
from cselab.data.sts import STS7
from cselab.errors import DataError
from cselab.evaluation import compare_methods
from cselab.sweep.claims import check_claims, read_claims, shown_claims
from cselab.sweep.store import Store
from cselab.views.figures import difference_chart, score_heatmap
from cselab.views.theme import use_theme

PAPERS = {
    "untrained": "BERT-base", "whitened": "BERT-whitening", "simcse": "SimCSE", "edfse": "EDFSE", "tncse": "TNCSE",
    "jtcse": "JTCSE", "edfse_d": "EDFSE D", "tncse_d": "TNCSE D", "jtcse_d": "JTCSE D", "uc": "JTCSE+UC", "uc_d": "JTCSE+UC D",
}  # fmt: skip
"""Systems by their rows in Table I of JTCSE (BERT-base)."""
TEXT = ("corpus", "sentences", "nli", "triplets")
"""Settings that say what is trained on; rows of one table may differ in them."""
HEADS = {
    "average": "average", "sd": "sd", "seeds": "seeds", "dev": "dev", "difference": "difference", "interval": "95 % interval", "p": "p",
    "p_holm": "p (Holm)", "seeds_needed": "seeds for 80 % power", "paper": "paper's BERT-base",
}  # fmt: skip


def write_report(
    store: Path, folder: Path, *, against: str | None = None, only: Sequence[str] = ("*",), claims: Path | None = None
) -> Path:
    """`index.html`, `report.md` and `tables/*.csv` in `folder`; gives the page's path.

    against: the label that others are compared with, the first of the store by default. only: labels, * and ? as in a shell.
    claims: a file of papers' claims, checked against all runs of the store (`cselab.sweep.claims`).
    Raises DataError for no store, a store without finished runs, an unknown label, and runs on several kinds of data: their scores
    belong in no table.
    """
    if not store.is_file():
        raise DataError(f"no store {store}; `cselab sweep` makes one")
    scores, runs = Store(store).scores(), Store(store).runs()
    if scores.empty:
        raise DataError(f"store {store} has no finished run ({len(runs)} failed); `cselab sweep` goes on with it")
    against = against or scores.label.iloc[0]
    scores = scores[[label == against or any(fnmatchcase(label, one) for one in only) for label in scores.label]]
    if against not in set(scores.label):
        raise DataError(f"no runs of {against!r} to compare with; there are {', '.join(dict.fromkeys(scores.label))}")
    use_theme()
    scores, notes = _newest(scores, runs, store)
    tables, figures = _tables(scores, against), {}
    if tables["scores"].difference.notna().any():
        figures["Differences"] = difference_chart({"here": tables["scores"]}, against)
    if (scores.measure == "test").any():
        figures["Every seed"] = _seeds(scores)
    if "phenomena" in tables:
        figures["Where it comes from"] = score_heatmap(
            tables["phenomena"].T.to_dict(), x_title="what was changed in a pair of the world"
        )
    if (scores.measure == "energy").any():
        figures["Energy of [CLS] and scores"] = _energy(scores)
    if claims:
        tables["claims"] = check_claims(scores, read_claims(claims))
    (folder / "tables").mkdir(parents=True, exist_ok=True)
    for name, table in tables.items():
        table.round(4).to_csv(folder / "tables" / f"{name}.csv")
    scores.to_csv(folder / "tables" / "rows.csv", index=False)
    others = [label for label in dict.fromkeys(scores.label) if label not in tables["scores"].index]
    if others and (scores.measure == "test").any():
        notes.append(f"Scores that notebooks recorded ({', '.join(others)}) are in tables/rows.csv.")
    notes += _conditions(runs[runs.key.isin(scores.key)], runs[runs.state == "failed"])
    digits = {"scores": 2, "phenomena": 1, "geometry": 3, "transfer": 1}
    shown = {name: _shown(table, digits[name]) for name, table in tables.items() if name != "claims"}
    if claims:
        shown = {"claims": shown_claims(tables["claims"]), **shown}
    (folder / "report.md").write_text(_markdown(shown, against, notes), encoding="utf-8")
    return _page(folder / "index.html", shown, figures, against, notes)


def _newest(scores: pandas.DataFrame, runs: pandas.DataFrame, store: Path) -> tuple[pandas.DataFrame, list[str]]:
    """One run a label and seed: the newest, where a label was done again with other settings or another version."""
    _same_data(scores, runs.set_index("key"), store)
    newest = scores.groupby(["label", "seed"], sort=False).key.transform("last")
    older = scores[scores.key != newest].key.nunique()
    sources = scores[scores.key == newest].source.unique()
    notes = [f"{older} older runs of the same label and seed are left out."] if older else []
    if len(sources) > 1:
        notes.append(f"The runs are by {len(sources)} versions of the library's source ({', '.join(sources)}).")
    return scores[scores.key == newest], notes


def _same_data(scores: pandas.DataFrame, runs: pandas.DataFrame, store: Path) -> None:
    """Rows may train on different text, by their settings; but their tests are the same, and equal settings have read equal data."""
    settings = runs.settings.map(json.loads)
    text = runs.profile + settings.map(lambda said: repr([said.get(name) for name in TEXT]))
    kinds = scores.data.groupby(text.reindex(scores.key).to_numpy()).nunique()
    tests = scores[(scores.measure == "test") & (scores.task == "average")].n.nunique()
    if kinds.max() > 1 or tests > 1:
        labels = {data: ", ".join(some.unique()) for data, some in scores.groupby("data", sort=False).label}
        found = "; ".join(f"{data}: {some}" for data, some in labels.items())
        raise DataError(
            f"store {store} has runs on {len(labels)} kinds of data ({found}); choose labels of one by --only"
        )


def _tables(scores: pandas.DataFrame, against: str) -> dict[str, pandas.DataFrame]:
    """By name: scores; then, where they were measured, phenomena, geometry and transfer. Labels are rows, means over seeds."""
    test = scores[scores.measure == ("test" if (scores.measure == "test").any() else "dev")]
    if test.empty:  # notebooks record under their methods' names
        test = scores.assign(label=scores.label + ": " + scores.measure, measure="test")
        against = test.label.iloc[0]
    if not (test.task == "average").any():  # a choice by the dev split alone is one task
        averages = test.groupby(["label", "seed"], sort=False).value.mean().rename("average").reset_index()
    else:
        averages = test[test.task == "average"].rename(columns={"value": "average"})
    table = compare_methods(averages.rename(columns={"label": "method"})[["method", "seed", "average"]], against)
    tasks = [task for task in dict.fromkeys(test.task) if task != "average"]
    means = test.pivot_table(index="label", columns="task", values="value", sort=False)
    if len(tasks) > 1:
        table = means[tasks].join(table, how="right")
    dev = scores[scores.measure == "dev"].groupby("label").value.mean()
    table.insert(table.columns.get_loc("seeds") + 1, "dev", dev.reindex(table.index))
    if set(tasks) == set(STS7):
        printed = reported.sts("jtcse", "I").average
        table["paper"] = scores.groupby("label").what.first().map(PAPERS).map(printed).reindex(table.index)
    tables = {"scores": table.reindex(list(dict.fromkeys(test.label)))}
    for name, measures in {
        "phenomena": ["phenomenon"],
        "geometry": ["uniformity", "alignment", "energy"],
        "transfer": ["transfer"],
    }.items():
        some = scores[scores.measure.isin(measures)]
        if not some.empty:
            columns = "measure" if len(measures) > 1 else "task"
            tables[name] = some.pivot_table(index="label", columns=columns, values="value", sort=False)
    return tables


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
    figure.update_yaxes(
        autorange="reversed", automargin=True, tickvals=list(range(len(labels))), ticktext=labels, showgrid=False
    )
    return figure.update_layout(
        xaxis_title="test average, Spearman × 100: a point a seed", height=190 + 34 * len(labels)
    )


def _energy(scores: pandas.DataFrame) -> go.Figure:
    """A point a label: mean energy and mean test average, with the rank correlation over labels that JTCSE claims to be positive."""
    test = scores[(scores.measure == "test") & (scores.task == "average")].groupby("label", sort=False).value.mean()
    energy = scores[scores.measure == "energy"].groupby("label", sort=False).value.mean()
    both = pandas.DataFrame({"energy": energy, "test": test}).dropna()
    rank = both.corr(method="spearman").iloc[0, 1]
    figure = go.Figure(
        go.Scatter(x=both.energy, y=both.test, mode="markers", text=both.index, marker=dict(size=9, opacity=0.7))
    )
    return figure.update_layout(
        xaxis_title=f"energy of [CLS], mean over layers; {len(both)} labels, Spearman {rank:+.2f}",
        yaxis_title="test average, Spearman × 100",
    )


def _conditions(runs: pandas.DataFrame, failed: pandas.DataFrame) -> list[str]:
    """Versions, hardware, time, what failed: a sentence each."""
    environments = [json.loads(text) for text in runs.environment]
    facts = {
        key: ", ".join(sorted({str(found[key]) for found in environments if found.get(key)}))
        for key in ("hardware", "python", "torch", "transformers", "cselab", "commit", "source")
    }
    hours = runs.seconds.sum() / 3600
    notes = [
        "; ".join(f"{key} {value}" for key, value in facts.items() if value)
        + f"; data {', '.join(runs.data.unique())}.",
        f"{len(runs)} runs, {hours:.1f} hours of one worker in all, trainings that they share left out.",
    ]
    notes += [f"FAILED: {run.label}, seed {run.seed}: {run.error}" for run in failed.itertuples()]
    return notes


def _shown(table: pandas.DataFrame, digits: int) -> pandas.DataFrame:
    """Texts as a person reads them."""
    table = table.copy()
    if "seeds" in table:
        table["seeds"] = table.seeds.map("{:.0f}".format)
    if "low" in table:
        known = table.difference.notna()
        table["interval"] = [
            f"[{a:+.2f}, {b:+.2f}]" if k else "" for a, b, k in zip(table.low, table.high, known, strict=True)
        ]
        table["difference"] = [f"{value:+.2f}" if k else "" for value, k in zip(table.difference, known, strict=True)]
        for name in ("p", "p_holm"):
            table[name] = [f"{value:.3f}" if k else "" for value, k in zip(table[name], known, strict=True)]
        table["seeds_needed"] = [
            f"{value:,.0f}" if k else "" for value, k in zip(table.seeds_needed, known, strict=True)
        ]
        order = [name for name in HEADS if name in table]
        rest = [name for name in table.columns if name not in (*HEADS, "low", "high", "power")]
        table = table[[*rest, *order]].rename(columns=HEADS)
    table = table.rename_axis(None, axis=1).rename_axis(None, axis=0)
    return table.map(
        lambda value: value if isinstance(value, str) else "" if pandas.isna(value) else f"{value:.{digits}f}"
    )


TITLES = {
    "claims": "Claims", "scores": "Test scores", "phenomena": "Phenomena of the generated world",
    "geometry": "Geometry, and energy of [CLS]", "transfer": "Transfer, accuracy × 100",
}  # fmt: skip


def _explained(against: str) -> str:
    return (
        f"Spearman × 100, means over seeds; difference: from {against}, seed by seed, with its 95 % t interval; p of the sign-flip "
        "permutation test, and after Holm's correction for all rows. Checkpoints were picked on dev; nothing was chosen on a test."
    )


def _markdown(tables: dict[str, pandas.DataFrame], against: str, notes: list[str]) -> str:
    lines = ["# Report of a sweep", "", _explained(against), ""]
    for name, table in tables.items():
        lines += [
            f"## {TITLES[name]}",
            "",
            "| | " + " | ".join(map(str, table.columns)) + " |",
            "|---" * (len(table.columns) + 1) + "|",
        ]
        lines += [
            f"| {label} | " + " | ".join(row) + " |"
            for label, row in zip(table.index, table.to_numpy().tolist(), strict=True)
        ]
        lines.append("")
    return "\n".join([*lines, "## Conditions", "", *(f"- {note}" for note in notes), ""])


def _page(
    target: Path, tables: dict[str, pandas.DataFrame], figures: dict[str, go.Figure], against: str, notes: list[str]
) -> Path:
    body = [
        "<main><h1>Report of a sweep</h1>",
        f"<p class='soft'>{html.escape(_explained(against))}</p>",
    ]
    for name, table in tables.items():
        body += [f"<h2>{TITLES[name]}</h2>", f"<div class='scroll'>{table.to_html(border=0, classes='numbers')}</div>"]
        body.append(f"<p class='soft'><a href='tables/{name}.csv'>{name}.csv</a></p>")
    for title, figure in figures.items():
        body += [
            f"<h2>{title}</h2>",
            figure.to_html(full_html=False, include_plotlyjs=False, config={"displaylogo": False}),
        ]
    body += ["<h2>Conditions</h2>", *(f"<p>{html.escape(note)}</p>" for note in notes), "</main>"]
    write_html(target, "cselab: report of a sweep", "".join(body), f"<script>{get_plotlyjs()}</script>")
    return target
