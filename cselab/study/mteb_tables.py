"""The papers' zero-shot tables as lists of mteb's tasks, and results of mteb beside them."""

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

import pandas
import yaml

from cselab.errors import SettingsError, suggest
from cselab.study import papers

_DATA = yaml.safe_load(files(__package__).joinpath("mteb_tables.yaml").read_text(encoding="utf-8"))


@dataclass(frozen=True)
class PaperTable:
    """A table of zero-shot scores.

    Attributes:
        papers: Keys of `papers.PAPERS` that print a part of it, under one number.
        average: The printed average's name.
        suffix: Suffix that mteb's names have and the printed ones lack.
        metric: Metric of mteb; None for its main score.
        only: The printed columns that belong here; none for all.
    """

    papers: Sequence[str]
    number: str
    average: str
    suffix: str = ""
    metric: str | None = None
    only: Sequence[str] = ()

    @property
    def title(self) -> str:
        """Paper and number: "JTCSE, Table II"."""
        return f"{papers.PAPERS[self.papers[0]]}, Table {self.number}"

    @functools.cached_property
    def cells(self) -> pandas.DataFrame:
        """The printed cells of BERT-base."""
        cells = pandas.concat([papers.rows(paper, self.number) for paper in self.papers])
        cells = cells[cells.backbone == "bert-base"]
        return cells[cells.task.isin((*self.only, self.average))] if self.only else cells

    @property
    def tasks(self) -> dict[str, str]:
        """mteb's task, or task/subset, by printed name."""
        printed = [name for name in dict.fromkeys(self.cells.task) if name != self.average]
        return {name: self._mteb_name(name) for name in printed}

    def _mteb_name(self, printed: str) -> str:
        if printed in _DATA["names"]:
            return _DATA["names"][printed]
        if printed.endswith(self.suffix) or printed in _DATA["full"]:
            return printed
        return f"{printed}{_DATA['left_out'].get(printed, '')}{self.suffix}"


TABLES: dict[str, PaperTable] = {
    name: PaperTable(**fields) for name, fields in _DATA["tables"].items()
}
"""Tables that name their tasks."""
SUPPLEMENT = tuple(name for name in TABLES if name.startswith("tncse-"))
RETRIEVAL, ZERO_SHOT = "jtcse-retrieval", "tncse-zero-shot"
GROUPS = {RETRIEVAL: ("tncse-retrieval",), ZERO_SHOT: SUPPLEMENT}
"""Tables that do not, with those whose tasks they have here: JTCSE's Table VII, fifteen metrics,
each a mean over 45 tasks; TNCSE's Table 2, the averages of its supplement's tables."""
OFFLINE = "offline"
NAMES = (*TABLES, *GROUPS)


@dataclass(frozen=True)
class Beside:
    """Our results beside a printed table.

    Attributes:
        frame: A row per printed task, a column per model, the last one ours; scores x100.
        done: Tasks, subsets or averages of it that have a result here; `coverage` is in words.
    """

    title: str
    frame: pandas.DataFrame
    done: int
    coverage: str

    def __str__(self) -> str:
        shown = self.frame.to_string(float_format="{:.2f}".format, na_rep="")
        return f"{self.title}: {self.coverage}\n{shown}"

    def _repr_html_(self) -> str:
        first = self.frame[[self.frame.columns[-1], *self.frame.columns[:-1]]]  # ours, in view
        shown = first.to_html(float_format="{:.2f}".format, na_rep="")
        return f"<p>{self.title}: {self.coverage}</p><div style='overflow-x: auto'>{shown}</div>"


def beside_table(name: str, results: Sequence[Any], label: str = "here") -> Beside:
    """Results of mteb beside a printed table.

    An average of ours stands beside the printed one only if every task of it has a result, with
    every subset; a task whose subsets are incomplete counts as missing.

    Args:
        name: One of NAMES.
        results: mteb's `TaskResult`s.
        label: Name of our column.

    Raises:
        SettingsError: For an unknown table.
    """
    if name == RETRIEVAL:
        return _retrieval(results, label)
    if name == ZERO_SHOT:
        return _averages(results, label)
    if name not in TABLES:
        raise SettingsError(f"no table {name!r}; {suggest(name, NAMES)}")
    table, by_task = TABLES[name], {result.task_name: result for result in results}
    scored = {task: _score(by_task, full, table.metric) for task, full in table.tasks.items()}
    ours = pandas.Series(scored, dtype=float).dropna()
    total, done = len(scored), len(ours)
    kind = "subsets" if any("/" in task for task in table.tasks.values()) else "tasks"
    coverage = f"{done} of {total} {kind}"
    if done == total:
        ours[table.average] = ours.mean()
    else:
        coverage += ", so no average of ours"
    return _beside(table.title, _wide(table.cells), label, ours, done, coverage)


def _beside(
    title: str, frame: pandas.DataFrame, label: str, ours: pandas.Series, done: int, coverage: str
) -> Beside:
    """The table with our column; a paper's model of that name keeps its own."""
    frame[f"{label} (here)" if label in frame else label] = ours
    return Beside(title, frame, done, coverage)


def tables_with(results: Sequence[Any]) -> list[str]:
    """Names of the tables that have one of these results at least."""
    return [name for name in NAMES if beside_table(name, results).done]


def scores(results: Sequence[Any], label: str = "here") -> pandas.DataFrame:
    """Main score x100 of each task, split and subset of `TaskResult`s, in a column `label`."""
    rows = [
        {
            "task": result.task_name,
            "split": split,
            "subset": row["hf_subset"],
            label: 100 * row["main_score"],
            "data": result.dataset_revision,
        }
        for result in results
        for split, subsets in result.scores.items()
        for row in subsets
    ]
    return pandas.DataFrame(rows, columns=["task", "split", "subset", label, "data"])


def _wide(cells: pandas.DataFrame) -> pandas.DataFrame:
    cells = cells.assign(model=papers.model_names(cells)).drop_duplicates(["model", "task"])
    wide = cells.pivot_table(index="task", columns="model", values="value", sort=False)
    return wide.rename_axis(index=None, columns=None)


def _score(by_task: Mapping[str, Any], name: str, metric: str | None) -> float | None:
    """Score x100 of a task or task/subset; None if a subset of it is missing."""
    task, _, subset = name.partition("/")
    result = by_task.get(task)
    if result is None:
        return None
    from cselab.evaluation.mteb_tasks import find_tasks

    rows = result.scores.get("test") or next(iter(result.scores.values()))
    by_subset = {row["hf_subset"]: row[metric or "main_score"] for row in rows}
    wanted = [subset] if subset else find_tasks([task])[0].hf_subsets
    if not set(wanted) <= by_subset.keys():
        return None
    return 100 * sum(by_subset[one] for one in wanted) / len(wanted)


def _averages(results: Sequence[Any], label: str) -> Beside:
    """TNCSE's Table 2: averages of its supplement's five tables, ours where they are complete."""
    frame, ours = _wide(papers.rows("tncse", "2")), {}
    for name in SUPPLEMENT:
        average = TABLES[name].average
        ours[average] = beside_table(name, results).frame["here"].get(average)
    column = pandas.Series(ours, dtype=float)
    done = int(column.count())
    return _beside("TNCSE, Table 2", frame, label, column, done, f"{done} of {len(frame)} averages")


METRICS = [
    f"{kind}@{k}" for kind in ("map", "mrr", "ndcg", "precision", "recall") for k in (1, 5, 10)
]
"""Metrics of JTCSE's Table VII."""


def retrieval_metrics(results: Sequence[Any]) -> pandas.DataFrame:
    """The metrics of JTCSE's Table VII (https://arxiv.org/abs/2505.02366) x100, a retrieval task a
    column."""
    from cselab.evaluation.mteb_tasks import find_tasks

    by_task = {result.task_name: result for result in results}
    kinds = {task.metadata.name: task.metadata.type for task in find_tasks(list(by_task))}
    names = [name for name in by_task if kinds.get(name) == "Retrieval"]
    columns = {
        name: [_score(by_task, name, metric.replace("@", "_at_")) for metric in METRICS]
        for name in names
    }
    return pandas.DataFrame(columns, index=METRICS, dtype=float)


def _retrieval(results: Sequence[Any], label: str) -> Beside:
    """Table VII; ours is a mean over the tasks with a result, of the 30 that TNCSE names."""
    named = set(TABLES["tncse-retrieval"].tasks.values())
    ours = retrieval_metrics([result for result in results if result.task_name in named])
    cells = papers.rows("jtcse", "VII")
    cells = cells[cells.metric.isin(ours.index) & (cells.task == "retrieval45")]
    frame = _wide(cells.assign(task=cells.metric))
    count = ours.shape[1]
    coverage = f"{count} of the {len(named)} tasks that TNCSE names; this table's 45 are not named"
    label = f"{label}, mean of {count}" if count else label
    return _beside("JTCSE, Table VII", frame, label, ours.mean(axis=1), count, coverage)
