"""Run comparer: finished trainings side by side, with bootstrap intervals of their differences."""

import math
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

import numpy as np
import plotly.graph_objects as go
import traitlets
from IPython.display import DisplayHandle
from plotly.subplots import make_subplots
from scipy.stats import rankdata

from cselab.errors import SettingsError
from cselab.evaluation import TaskScore, compare_pairs
from cselab.experiments.finished import FinishedRun
from cselab.plots.theme import PALETTE
from cselab.widgets.widget import Widget, escape_label, one_of, rounded

MOST = len(PALETTE)
RESAMPLES = 500


class RunComparer(Widget):
    """Compare finished runs: dev curves, test scores, and scores by phenomenon.

    Scores are Spearman x100. Each difference from the baseline has a 95 % interval of a paired
    bootstrap over the test pairs, as `cselab.evaluation.compare_pairs` computes it.

    Controls, which can be set as attributes: picked, names of at most 7 runs; baseline, one name.

    Args:
        runs: Functions that open a run, by name (`lab.finished_runs()`). A run is opened, once,
            when it is picked: that loads and scores its encoder.

    Raises:
        SettingsError: For a name that is not of `runs`, or more than 7.

    Examples:
        >>> from cselab.experiments import open_lab
        >>> from cselab.widgets import RunComparer
        >>> lab = open_lab("x", steps=2, batch_size=8, sentences=50, dev_pairs=20)
        >>> trained = lab.train("simcse", round_trips=None)  # doctest: +ELLIPSIS
        simcse: computed in ... s, kept as simcse-...
        >>> comparer = RunComparer(lab.finished_runs())
        >>> comparer.baseline  # doctest: +ELLIPSIS
        'simcse, seed 42, dev ... [...]'
    """

    script = "runs"
    names = traitlets.List(traitlets.Unicode()).tag(sync=True)
    most = traitlets.Int(MOST).tag(sync=True)
    picked = traitlets.List(traitlets.Unicode()).tag(sync=True)
    baseline = traitlets.Unicode().tag(sync=True)
    opened = traitlets.Dict().tag(sync=True)
    """What the browser has, by run; it asks for the others."""
    failed = traitlets.Dict().tag(sync=True)
    """Why a run could not be opened, by its name."""

    def __init__(self, runs: Mapping[str, Callable[[], FinishedRun]]):
        names = list(runs)
        self.run = lru_cache(maxsize=None)(lambda name: runs[name]())
        self.appearing = False
        """While it is, `static` opens nothing."""
        super().__init__(names=names, picked=names[:2], baseline=names[0] if names else "")

    @traitlets.validate("picked")
    def _known_runs(self, proposal: dict) -> list[str]:
        picked = list(dict.fromkeys(one_of("run", name, self.names) for name in proposal["value"]))
        if len(picked) > MOST:
            raise SettingsError(f"picked has {len(picked)} runs; at most {MOST} are shown")
        return picked

    @traitlets.validate("baseline")
    def _known_run(self, proposal: dict) -> str:
        return one_of("run", proposal["value"], self.names) if self.names else proposal["value"]

    def answer(self, question: dict[str, Any]) -> None:
        """Open a run, also one that failed before."""
        name = question["run"]
        self.failed = {other: why for other, why in self.failed.items() if other != name}
        self._open(name)

    def _open(self, *names: str) -> None:
        """Open runs, and give the browser what it lacks of them, or why it cannot have them."""
        for name in dict.fromkeys(names):
            if name in self.opened or name in self.failed:
                continue
            try:
                self.opened = {**self.opened, name: _packed(self.run(name))}
            except Exception as error:
                self.failed = {**self.failed, name: f"{type(error).__name__}: {error}"}

    def _open_chosen(self) -> None:
        if self.names:
            self._open(*self.picked, self.baseline)

    def page_state(self) -> dict[str, Any]:
        """With the runs that are picked, and all that were opened before; a page opens no other."""
        self._open_chosen()
        known = [name for name in self.names if name in self.opened or name in self.failed]
        return {**super().page_state(), "names": known}

    def display_with_figure(self) -> DisplayHandle | None:
        """Display the widget, which says what is being opened; open the runs; draw the figure."""
        self.appearing = True
        try:
            handle = super().display_with_figure()
        finally:
            self.appearing = False
        figure = self.figure_output()
        if handle is not None:
            handle.update(figure, raw=True)
        return handle

    def static(self) -> go.Figure:
        """The picked runs: dev curves, differences from the baseline, scores by phenomenon.

        A run that cannot be opened has only its name. Tests with other pairs than the baseline's
        have no difference.
        """
        if not self.appearing:
            self._open_chosen()
        figure = make_subplots(
            rows=2,
            cols=2,
            specs=[[{}, {}], [{"colspan": 2}, None]],
            vertical_spacing=0.2,
            horizontal_spacing=0.14,
            subplot_titles=["dev score", "test score minus the baseline's", "test by phenomenon"],
        )
        found = {name: self.run(name) for name in self.opened}
        baseline = found[self.baseline].report.tasks if self.baseline in found else {}
        for number, (colour, name) in enumerate(zip(PALETTE, self.picked, strict=False)):
            style = dict(name=escape_label(name), legendgroup=name)
            if name not in found:
                style["name"] += " (not opened)"
                figure.add_scatter(x=[None], y=[None], line_color=colour, row=1, col=1, **style)
                continue
            history, report, phenomena = found[name]
            figure.add_scatter(
                x=[row["step"] for row in history],
                y=[row["dev"] for row in history],
                mode="lines+markers",
                line_color=colour,
                row=1,
                col=1,
                **style,
            )
            figure.add_bar(
                x=list(phenomena),
                y=list(phenomena.values()),
                marker_color=colour,
                showlegend=False,
                row=2,
                col=1,
                **style,
            )
            tasks = [
                task for task, its in baseline.items() if _comparable(report.tasks.get(task), its)
            ]
            if name == self.baseline or not tasks:
                continue
            compared = [
                compare_pairs(report.tasks[task], baseline[task], resamples=RESAMPLES)
                for task in tasks
            ]
            figure.add_scatter(
                x=[list(baseline).index(task) + 0.1 * (number - 3) for task in tasks],
                y=[c.difference for c in compared],
                mode="markers",
                marker=dict(color=colour, size=9),
                showlegend=False,
                error_y=dict(
                    array=[c.high - c.difference for c in compared],
                    arrayminus=[c.difference - c.low for c in compared],
                ),
                row=1,
                col=2,
                **style,
            )
        tests = dict(tickvals=list(range(len(baseline))), ticktext=list(baseline))
        figure.update_xaxes(**tests, range=[-0.5, len(baseline) - 0.5], row=1, col=2)
        figure.add_hline(y=0, line=dict(color="#888", dash="dot"), row=1, col=2)
        figure.update_xaxes(title="step", row=1, col=1)
        figure.update_yaxes(title="Spearman × 100", col=1)
        figure.update_yaxes(title="points, 95 % interval", row=1, col=2)
        legend = dict(orientation="v", x=0, y=1, yref="container", yanchor="top")
        top = 32 * len(self.picked) + 40
        return figure.update_layout(
            height=680 + top, barmode="group", legend=legend, margin=dict(t=top, b=90)
        )


def _packed(run: FinishedRun) -> dict[str, Any]:
    """What the browser draws of a run; lists, as a saved notebook sorts what has names."""
    return {
        "history": [[row["step"], rounded(row["dev"], 6)] for row in run.history],
        "tests": [
            {
                "task": task,
                "pairs": score.data.fingerprint,
                "score": rounded(score.spearman, 6),
                "resampled": [rounded(x, 6) for x in resampled_scores(score).tolist()],
            }
            for task, score in run.report.tasks.items()
        ],
        "phenomena": [[name, rounded(score, 6)] for name, score in run.phenomena.items()],
    }


def _comparable(mine: TaskScore | None, its: TaskScore) -> bool:
    """Whether both are scores, and of the same pairs."""
    if mine is None or mine.data.fingerprint != its.data.fingerprint:
        return False
    return math.isfinite(mine.spearman) and math.isfinite(its.spearman)


def resampled_scores(score: TaskScore) -> np.ndarray:
    """Spearman x100 on each of the bootstrap's resamples of the pairs, (500,).

    The resamples are those of `compare_pairs`. So the browser can compare any two opened runs: the
    interval of their difference is that of the differences on each resample.

    Args:
        score: Score of n pairs.
    """
    n = len(score.data)
    drawn = np.random.default_rng(0).integers(n, size=(RESAMPLES, n))
    x, y = (rankdata(values[drawn], axis=1) for values in (score.similarities, score.data.scores))
    x, y = (ranks - ranks.mean(1, keepdims=True) for ranks in (x, y))
    with np.errstate(invalid="ignore"):  # NaN where all cosines are equal
        return 100 * (x * y).sum(1) / np.sqrt((x * x).sum(1) * (y * y).sum(1))
