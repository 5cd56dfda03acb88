"""The figure and the tables of the second backbone: how SimCSE trains from it, on STS-B dev."""

import json
from functools import cache

import pandas
import plotly.graph_objects as go
from result_values import REFERENCE

from cselab.experiments.store import Store
from cselab.study.recorded import store
from cselab.workbook import plots

PAPERS = {"learning_rate": 3e-05, "temperature": 0.05, "dropout": 0.1, "head": "none"}
WIKIPEDIA, CAPTIONS = "wiki1m-piece,wikipedia-2014", "multi30k-captions"
SETTINGS = ["backbone", "method", "pooling", "corpus", *PAPERS, "steps", "seed"]
HEAD = {"head": "mlp_train_only"}
FASTER = {"learning_rate": 1e-4, "dropout": 0.3}
SHOWN = {
    "tiny-bert, the papers' settings": {**PAPERS, "backbone": "tiny-bert", "corpus": WIKIPEDIA},
    "plain-bert, the papers' settings": {**PAPERS, "corpus": WIKIPEDIA, "steps": 500},
    "with their head": {**PAPERS, **HEAD, "corpus": WIKIPEDIA},
    "τ 0.01, rate 1e-4": {**FASTER, "temperature": 0.01, "dropout": 0.1, "corpus": WIKIPEDIA},
    "their head, dropout 0.3, rate 1e-4": {
        **FASTER,
        **HEAD,
        "temperature": 0.05,
        "corpus": WIKIPEDIA,
    },
    "captions, dropout 0.3, τ 0.01, rate 1e-4": {
        **FASTER,
        "temperature": 0.01,
        "corpus": CAPTIONS,
        "steps": 200,
    },
    "plain-bert, supervised": {"method": "simcse_supervised"},
}
"""Names of curves, and what marks their run among those of plain-bert-dev.json."""


@cache
def runs() -> pandas.DataFrame:
    """Runs of one seed: their settings, and their dev scores over the steps."""
    return pandas.DataFrame(json.loads((REFERENCE / "plain-bert-dev.json").read_text()))


def curve(**settings: object) -> tuple[list[int], list[float]]:
    """Steps and dev scores of the one run with these settings, by default of plain-bert's [CLS]."""
    wanted = {"backbone": "plain-bert", "method": "simcse", "pooling": "cls", **settings}
    (dev,) = runs().dev[(runs()[list(wanted)] == pandas.Series(wanted)).all(axis=1)]
    steps, scores = zip(*dev, strict=True)
    return list(steps), list(scores)


def curve_scores(name: str) -> list[float]:
    """Dev scores of a curve of the figure, from the start on."""
    return curve(**SHOWN[name])[1]


def climb_figure() -> go.Figure:
    """Dev scores over the steps of SimCSE from both backbones."""
    return plots.line_chart(
        {name: curve(**settings) for name, settings in SHOWN.items()},
        title="SimCSE from two backbones",
        x_title="step",
        y_title="STS-B dev, Spearman × 100",
    ).update_layout(width=900, height=480)


def climbs() -> pandas.DataFrame:
    """Every run of which the curve is kept: settings, start, best and last dev score."""
    table = runs()[list(SETTINGS)].astype(str)
    scores = runs().dev.map(lambda dev: [score for _, score in dev])
    columns = {"start": lambda dev: dev[0], "best": max, "end": lambda dev: dev[-1]}
    for name, value in columns.items():
        table[name] = scores.map(value).map("{:.1f}".format)
    return table.set_axis([str(number) for number in range(1, len(table) + 1)])


def climb() -> pandas.DataFrame:
    """The best dev score of each run of real-climb.toml."""
    rows = Store(store("real-climb")).scores().set_index("label")
    return rows[rows.measure == "dev"].value.map("{:.1f}".format).to_frame("STS-B dev")
