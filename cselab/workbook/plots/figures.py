"""Static figures: training curves, scores, differences, changes of meaning, geometry."""

import itertools
from collections import Counter
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

import pandas
import plotly.graph_objects as go
import torch
from plotly.subplots import make_subplots

from cselab.evaluation.couples import RankedCouples
from cselab.evaluation.significance import compare_pairs
from cselab.evaluation.sts import StsReport
from cselab.models.texts import as_sentences
from cselab.workbook.analysis.round_trips import token_overlap
from cselab.workbook.plots.theme import PALETTE

DASHES = ("solid", "dash", "dot", "dashdot", "longdash", "longdashdot")
"""Of the lines of one training's terms."""
VERTICAL = dict(orientation="v", x=1.02, xanchor="left", y=1, yanchor="top")
"""A legend beside the axes."""
LOW_IS_GOOD = dict(
    xaxis_title="uniformity (lower: more spread out)", yaxis_title="alignment (lower: closer)"
)
NOT_LOSS_TERMS = {"step", "dev", "learning_rate", "alignment", "uniformity"}


def training_curves(
    runs: Mapping[str, Sequence[Mapping[str, float | int]]], dev_name: str = "dev"
) -> go.Figure:
    """Dev score and loss terms of each run (`FitResult.history` by name) over its steps.

    Examples:
        >>> from cselab.workbook.plots import training_curves
        >>> history = [{"step": 0, "dev": 50.0}, {"step": 5, "dev": 60.0, "nce": 2.0}]
        >>> [line.name for line in training_curves({"simcse": history}).data]
        ['simcse', 'simcse: nce']
    """
    titles = (f"Spearman × 100 on {dev_name}", "Mean loss term since the last evaluation")
    figure = make_subplots(cols=2, horizontal_spacing=0.12, subplot_titles=titles)
    for colour, (name, history) in zip(itertools.cycle(PALETTE), runs.items(), strict=False):
        steps = [row["step"] for row in history]
        dev = [row["dev"] for row in history]
        marks = dict(mode="lines+markers", row=1)
        line = dict(color=colour)
        figure.add_scatter(x=steps, y=dev, name=name, legendgroup=name, line=line, **marks, col=1)
        terms = [key for key in history[-1] if key not in NOT_LOSS_TERMS]
        for dash, term in zip(itertools.cycle(DASHES), terms, strict=False):
            look = dict(line=dict(color=colour, dash=dash), marker_size=4, name=f"{name}: {term}")
            values = [row.get(term) for row in history[1:]]
            figure.add_scatter(x=steps[1:], y=values, **look, **marks, col=2)
    figure.update_xaxes(title="step")
    legend = dict(orientation="h", y=-0.3, yanchor="top")
    return figure.update_layout(legend=legend, margin=dict(b=150), height=480)


def score_bars(
    scores: Mapping[str, Mapping[str, float]], title: str = "", score: str = "Spearman × 100"
) -> go.Figure:
    """Bars of `scores[method][task]`, one colour per method; for a single task, one bar per method.

    Examples:
        >>> from cselab.workbook.plots import score_bars
        >>> figure = score_bars({"simcse": {"STS12": 68.4, "STS13": 82.4}})
        >>> figure.data[0].x, figure.data[0].y
        (('STS12', 'STS13'), (68.4, 82.4))
    """
    figure = go.Figure(layout=dict(title=title, yaxis_title=score, barmode="group"))
    single = len(next(iter(scores.values()))) == 1
    for method, by_task in scores.items():
        x = [method] if single else list(by_task)
        values = list(by_task.values())
        figure.add_bar(x=x, y=values, name=method, texttemplate="%{y:.1f}", showlegend=not single)
    if single:
        (task,) = next(iter(scores.values()))
        figure.update_yaxes(title=f"{task}: {score}")
    return figure


def score_intervals(
    reports: Mapping[str, StsReport], *, against: str | None = None, title: str = ""
) -> go.Figure:
    """Test scores with their 95 % bootstrap intervals over test pairs, a method a row.

    `against`: a method; a second panel has every other one's difference from it by
    `evaluation.compare_pairs`. Those intervals are narrower: the pairs move both scores alike.

    Examples:
        >>> from cselab.evaluation import evaluate_sts
        >>> from cselab.workbook.plots import score_intervals
        >>> lengths = lambda sentences: [[len(sentence), 10.0] for sentence in sentences]
        >>> report = evaluate_sts(lengths, "Synthetic", resamples=50)
        >>> [panel.name for panel in score_intervals({"lengths": report}).data]
        ['Synthetic']
    """
    names = list(reports)
    tasks = list(reports[names[0]].tasks)
    columns = 2 if against else 1
    figure = make_subplots(cols=columns, shared_yaxes=True, horizontal_spacing=0.06)
    for place, task in enumerate(tasks):
        look = dict(
            mode="markers" if len(tasks) > 1 else "markers+text",
            textposition="top center",
            marker=dict(color=PALETTE[place % len(PALETTE)], size=9),
            legendgroup=task,
            name=task,
        )
        found = {name: reports[name].tasks[task] for name in names}
        places = {name: row + 0.6 * place / len(tasks) for row, name in enumerate(names)}
        rows = [(places[name], one.spearman, one.low, one.high) for name, one in found.items()]
        figure.add_trace(_intervals(rows, "{:.1f}", **look), row=1, col=1)
        if against:
            pairs = {
                name: compare_pairs(one, found[against])
                for name, one in found.items()
                if name != against
            }
            rows = [(places[name], p.difference, p.low, p.high) for name, p in pairs.items()]
            figure.add_trace(_intervals(rows, "{:+.1f}", **look, showlegend=False), row=1, col=2)
    name_rows(figure, names)
    figure.update_xaxes(title="Spearman × 100", col=1)
    if against:
        figure.update_xaxes(title=f"above {against}", col=2)
        figure.add_vline(x=0, line=dict(color="#888", dash="dot"), col=2)
    return figure.update_layout(
        title=title, height=190 + (34 + 6 * len(tasks)) * len(names), showlegend=len(tasks) > 1
    )


def _intervals(
    rows: Sequence[tuple[float, float, float, float]], form: str, **look: Any
) -> go.Scatter:
    """Points of (place, value, low, high)."""
    places, values, lows, highs = zip(*rows, strict=True)
    return go.Scatter(
        x=values,
        y=places,
        text=[form.format(value) for value in values],
        error_x=dict(
            array=[high - value for high, value in zip(highs, values, strict=True)],
            arrayminus=[value - low for low, value in zip(lows, values, strict=True)],
        ),
        **look,
    )


def name_rows(figure: go.Figure, names: Sequence[str]) -> None:
    """Label rows on the y axis: y = i is row i from the top."""
    ticks = dict(tickvals=list(range(len(names))), ticktext=names)
    figure.update_yaxes(range=[len(names) - 0.3, -0.6], automargin=True, showgrid=False, **ticks)


def difference_chart(
    tables: Mapping[str, pandas.DataFrame], against: str, title: str = ""
) -> go.Figure:
    """Difference of each method from a baseline, by text (`evaluation.compare_methods`).

    Examples:
        >>> import pandas
        >>> from cselab.workbook.plots import difference_chart
        >>> table = pandas.DataFrame({"difference": [1.5], "low": [1.0], "high": [2.0]}, ["tncse"])
        >>> figure = difference_chart({"synthetic text": table}, "simcse")
        >>> figure.layout.xaxis.title.text
        'points above simcse,<br>95 % interval over seeds'
    """
    figure = go.Figure()
    known = {name: table.dropna(subset="difference") for name, table in tables.items()}
    methods = list(dict.fromkeys(method for table in known.values() for method in table.index))
    tables_in_colour = zip(itertools.cycle(PALETTE), known.items(), strict=False)
    for place, (colour, (name, table)) in enumerate(tables_in_colour):
        above, below = table.high - table.difference, table.difference - table.low
        figure.add_scatter(
            x=table.difference,
            y=[methods.index(method) + 0.18 * place for method in table.index],
            mode="markers",
            name=name,
            marker=dict(color=colour, size=9, symbol=("circle", "diamond")[place % 2]),
            text=list(table.index),
            error_x=dict(array=above, arrayminus=below),
        )
    figure.add_vline(x=0, line=dict(color="#888", dash="dot"))
    name_rows(figure, methods)
    return figure.update_layout(
        title=title,
        xaxis_title=f"points above {against},<br>95 % interval over seeds",
        height=180 + 22 * len(known) + max(34, 16 * len(known)) * len(methods),
        margin=dict(b=80 + 22 * len(known)),  # on a phone each name has a line of the legend
        legend=dict(
            orientation="h", x=0.01, xref="container", y=0.01, yref="container", yanchor="bottom"
        ),
        showlegend=True,
    )


def energy_chart(scores: pandas.DataFrame) -> go.Figure:
    """Mean energy of [CLS] and mean test average of each label, with their rank correlation.

    JTCSE (https://arxiv.org/abs/2505.02366) claims a positive correlation. One colour and symbol
    per method. `scores` are a sweep's (`cselab.experiments.store.Store.scores`).

    Examples:
        >>> import pandas
        >>> from cselab.workbook.plots import energy_chart
        >>> rows = [
        ...     (label, "simcse", *measured)
        ...     for label, energy, test in (("a", 0.3, 70.0), ("b", 0.4, 72.0))
        ...     for measured in (("energy", "", energy), ("test", "average", test))
        ... ]
        >>> scores = pandas.DataFrame(rows, columns=["label", "method", "measure", "task", "value"])
        >>> energy_chart(scores).layout.xaxis.title.text
        'energy of [CLS], mean over layers; 2 labels, Spearman +1.00'
    """
    is_energy = scores.measure == "energy"
    is_average = (scores.measure == "test") & (scores.task == "average")
    columns = {
        "method": scores.groupby("label", sort=False)["method"].first(),
        "energy": scores[is_energy].groupby("label").value.mean(),
        "test": scores[is_average].groupby("label").value.mean(),
    }
    both = pandas.DataFrame(columns).dropna()
    rank = both.energy.corr(both.test, method="spearman")
    figure = go.Figure()
    markers = itertools.product(("circle", "diamond", "cross", "triangle-up"), PALETTE)
    methods = both.groupby("method", sort=False)
    for (symbol, colour), (method, rows) in zip(markers, methods, strict=False):
        figure.add_scatter(
            x=rows.energy,
            y=rows.test,
            mode="markers",
            name=method,
            text=rows.index,
            marker=dict(size=9, opacity=0.8, color=colour, symbol=symbol),
        )
    return figure.update_layout(
        xaxis_title=f"energy of [CLS], mean over layers; {len(both)} labels, Spearman {rank:+.2f}",
        yaxis_title="test average, Spearman × 100",
        height=max(460, 160 + 27 * len(figure.data)),
        legend=VERTICAL,
    )


def score_heatmap(
    scores: Mapping[str, Mapping[str, float]],
    title: str = "",
    x_title: str = "",
    score: str = "Spearman × 100",
) -> go.Figure:
    """Heat map of `scores[row][column]`, with the numbers in the cells.

    Examples:
        >>> from cselab.workbook.plots import score_heatmap
        >>> [cells] = score_heatmap({"simcse": {"antonym": 40.0, "topic": 55.0}}).data
        >>> cells.x, cells.y, cells.z
        (('antonym', 'topic'), ('simcse',), ([40.0, 55.0],))
    """
    rows, columns = list(scores), list(next(iter(scores.values())))
    values = [[scores[row][column] for column in columns] for row in rows]
    look = dict(colorscale="Cividis", texttemplate="%{z:.0f}", colorbar=dict(title=score))
    figure = go.Figure(go.Heatmap(x=columns, y=rows, z=values, **look))
    height, reversed_axis = 160 + 42 * len(rows), dict(autorange="reversed")
    return figure.update_layout(
        title=title, xaxis_title=x_title, yaxis=reversed_axis, height=height
    )


def couples_chart(found: Mapping[str, Mapping[str, RankedCouples]]) -> go.Figure:
    """Which changes of meaning each encoder notices (`evaluation.rank_couples` by its name).

    Changes that are noticed most come first. On the line at 50 % a change is not seen.

    Examples:
        >>> from cselab.evaluation import rank_couples
        >>> from cselab.workbook.plots import couples_chart
        >>> by_length = lambda sentences: [[len(sentence), 10.0] for sentence in sentences]
        >>> figure = couples_chart({"lengths": rank_couples(by_length)})
        >>> figure.data[0].name, len(figure.data[0].x)
        ('lengths', 8)
    """
    first = next(iter(found.values()))
    changes = sorted(first, key=lambda change: -sum(by[change].share for by in found.values()))
    figure = go.Figure()
    for place, (name, by_change) in enumerate(found.items()):
        above = 0.7 * ((place + 0.5) / len(found) - 0.5)  # beside the other encoders of the row
        rows = [
            (row + above, by_change[change].share, by_change[change].low, by_change[change].high)
            for row, change in enumerate(changes)
        ]
        marker = dict(color=PALETTE[place % len(PALETTE)], size=8)
        figure.add_trace(_intervals(rows, "{:.0f}", name=name, mode="markers", marker=marker))
    figure.add_vline(x=50, line=dict(color="#888", dash="dot"))
    name_rows(figure, [change.replace("_", " ") for change in changes])
    figure.update_xaxes(
        title="paraphrase nearer than the changed copy, % of couples<br>"
        "(50: the change is not seen)"
    )
    return figure.update_layout(
        height=150 + max(34, 15 * len(found)) * len(changes), showlegend=True
    )


def alignment_uniformity(points: Mapping[str, tuple[float, float]], title: str = "") -> go.Figure:
    """(Uniformity, alignment) of each method; lower is better on both axes.

    Wang and Isola 2020, https://arxiv.org/abs/2005.10242.

    Examples:
        >>> from cselab.workbook.plots import alignment_uniformity
        >>> figure = alignment_uniformity({"untrained": (-1.0, 0.2), "simcse": (-2.5, 0.3)})
        >>> [(point.name, point.x, point.y) for point in figure.data]
        [('untrained', (-1.0,), (0.2,)), ('simcse', (-2.5,), (0.3,))]
    """
    figure = go.Figure(layout=dict(title=title, **LOW_IS_GOOD))
    symbols = ("circle", "diamond", "square", "cross")  # the next one after all colours
    for i, (name, (uniformity, alignment)) in enumerate(points.items()):
        marker = dict(size=14, symbol=symbols[i // len(PALETTE) % len(symbols)])
        figure.add_scatter(x=[uniformity], y=[alignment], mode="markers", marker=marker, name=name)
    return figure.update_layout(legend=VERTICAL)


def violins(
    groups: Mapping[str, Sequence[float] | torch.Tensor], title: str, y_title: str
) -> go.Figure:
    """Distribution of each group's values, with a box of the quartiles and the median.

    Examples:
        >>> from cselab.workbook.plots import violins
        >>> [group.name for group in violins({"cls": [1.0, 1.2], "pooled": [3.0]}, "", "norm").data]
        ['cls', 'pooled']
    """
    figure = go.Figure(layout=dict(title=title, yaxis_title=y_title, showlegend=False))
    for name, values in groups.items():
        figure.add_violin(
            y=torch.as_tensor(values).tolist(),
            name=name,
            line_color=PALETTE[0],
            box_visible=True,
            points=False,
            spanmode="hard",
        )
    return figure


def overlap_histogram(pairs: Mapping[str, Sequence[tuple[str, str]]]) -> go.Figure:
    """Histogram of the share of words that round trips keep, one colour per pivot.

    The share is the Jaccard index of the word sets, rounded down to a tenth. Sentences that come
    back as they were have a bar of their own, beside those that keep all words in another order.

    Examples:
        >>> from cselab.workbook.plots import overlap_histogram
        >>> pairs = [("a dog", "a dog"), ("a dog", "dog a"), ("a dog", "one cat")]
        >>> [bars] = overlap_histogram({"fr": pairs}).data
        >>> [(bars.x[i], round(bars.y[i])) for i in (0, 10, 11)]  # %
        [('0', 33), ('1', 33), ('unchanged', 33)]
    """
    titles = dict(
        xaxis_title="token overlap with the original", yaxis_title="share of sentences (%)"
    )
    figure = go.Figure(layout=dict(**titles, barmode="group"))
    names = [f"{tenth / 10:g}" for tenth in range(11)] + ["unchanged"]
    for pivot, sentences in pairs.items():
        texts = [as_sentences(pair, "a pair") for pair in sentences]
        bars = Counter(11 if a == b else int(10 * token_overlap(a, b) + 1e-9) for a, b in texts)
        shares = [100 * bars[bar] / max(1, len(texts)) for bar in range(12)]
        figure.add_bar(x=names, y=shares, name=pivot)
    return figure.update_xaxes(type="category")


def line_chart(
    lines: Mapping[str, tuple[Sequence[float | int], Sequence[float | int]]],
    title: str,
    x_title: str,
    y_title: str,
    log_y: bool = False,
) -> go.Figure:
    """Line chart of the (x, y) values of each name.

    Examples:
        >>> from cselab.workbook.plots import line_chart
        >>> figure = line_chart({"d = 1": ([5, 10], [0.40, 0.80])}, "Power", "seeds", "power")
        >>> figure.data[0].name, figure.data[0].y
        ('d = 1', (0.4, 0.8))
    """
    figure = go.Figure(layout=dict(title=title, xaxis_title=x_title, yaxis_title=y_title))
    for name, (x, y) in lines.items():
        figure.add_scatter(x=list(x), y=list(y), mode="lines", name=name)
    if len(lines) > 4:  # a legend of two lines would overlap the title
        figure.update_layout(legend=VERTICAL)
    ticks = [digit * 10**power for power in range(-6, 7) for digit in (1, 2, 5)]
    return figure.update_yaxes(type="log", tickvals=ticks) if log_y else figure


def escape_label(text: str) -> str:
    """Escape a user's text, in which plotly would read HTML."""
    return escape(text, quote=False)
