"""The figure and the tables of the second backbone: how SimCSE trains from it, on STS-B dev."""

import json
from functools import cache

import pandas
import plotly.graph_objects as go
from result_paths import REFERENCE

from cselab import plots
from cselab.reporting.recorded import store
from cselab.sweep.store import Store

PAPERS = {"learning_rate": 3e-05, "temperature": 0.05, "dropout": 0.1, "head": "none"}
WIKIPEDIA, CAPTIONS = "wiki1m-piece,wikipedia-2014", "multi30k-captions"
SETTINGS = (
    "backbone",
    "method",
    "pooling",
    "corpus",
    "learning_rate",
    "temperature",
    "dropout",
    "head",
    "steps",
    "seed",
)
MEASURED = ("start", "best", "end")
SHOWN = {
    "tiny-bert, the papers' settings": {**PAPERS, "backbone": "tiny-bert", "corpus": WIKIPEDIA},
    "plain-bert, the papers' settings": {**PAPERS, "corpus": WIKIPEDIA, "steps": 500},
    "with their head": {**PAPERS, "corpus": WIKIPEDIA, "head": "mlp_train_only"},
    "τ 0.01, rate 1e-4": {
        "corpus": WIKIPEDIA,
        "learning_rate": 1e-4,
        "temperature": 0.01,
        "dropout": 0.1,
    },
    "their head, dropout 0.3, rate 1e-4": {
        "corpus": WIKIPEDIA,
        "learning_rate": 1e-4,
        "temperature": 0.05,
        "dropout": 0.3,
        "head": "mlp_train_only",
    },
    "captions, dropout 0.3, τ 0.01, rate 1e-4": {
        "corpus": CAPTIONS,
        "learning_rate": 1e-4,
        "temperature": 0.01,
        "dropout": 0.3,
        "steps": 200,
    },
    "plain-bert, supervised": {"method": "simcse_supervised"},
}
"""Names of curves, and what marks their run among those of plain-bert-dev.json."""


@cache
def runs() -> list[dict]:
    """Runs of one seed, with their dev scores over the steps."""
    return json.loads((REFERENCE / "plain-bert-dev.json").read_text())


def curve(**settings: object) -> list[tuple[int, float]]:
    """Steps and dev scores of the one run with these settings, by default of plain-bert's [CLS]."""
    wanted = {"backbone": "plain-bert", "method": "simcse", "pooling": "cls", **settings}
    (run,) = (run for run in runs() if all(run[key] == value for key, value in wanted.items()))
    return [(step, score) for step, score in run["dev"]]


def curve_scores(name: str) -> list[float]:
    """Dev scores of a curve of the figure, from the start on."""
    return [score for _, score in curve(**SHOWN[name])]


def climb_figure() -> go.Figure:
    """Dev scores over the steps of SimCSE from both backbones."""
    lines = {name: tuple(zip(*curve(**settings), strict=True)) for name, settings in SHOWN.items()}
    return plots.line_chart(
        {name: (list(steps), list(scores)) for name, (steps, scores) in lines.items()},
        title="SimCSE from two backbones",
        x_title="step",
        y_title="STS-B dev, Spearman × 100",
    ).update_layout(width=900, height=480)


def climbs() -> pandas.DataFrame:
    """Every run of which the curve is kept: settings, start, best and last dev score."""
    rows = {}
    for number, run in enumerate(runs(), 1):
        scores = [score for _, score in run["dev"]]
        settings = [str(run[name]) for name in SETTINGS]
        rows[str(number)] = [*settings, *(f"{x:.1f}" for x in (scores[0], max(scores), scores[-1]))]
    return pandas.DataFrame.from_dict(rows, orient="index", columns=[*SETTINGS, *MEASURED])


def climb() -> pandas.DataFrame:
    """The best dev score of each run of real-climb.toml."""
    rows = Store(store("real-climb")).scores().set_index("label")
    return rows[rows.measure == "dev"].value.map("{:.1f}".format).to_frame("STS-B dev")
