"""Tables of a store: over seeds, with paired tests, the papers' figures beside ours."""

import functools
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import pandas

from cselab.data.sts import STS7
from cselab.evaluation.methods import compare_methods
from cselab.evaluation.significance import FEWEST_SEEDS
from cselab.experiments.measures import LONG
from cselab.experiments.store import Store
from cselab.machine import clock
from cselab.methods import method_names, registered
from cselab.study import papers
from cselab.study.claims import check_claims, read_claims, shown_claims
from cselab.study.comparable import comparable_scores, read_object
from cselab.study.texts import DIGITS, as_texts, one_line

MEASURES = {
    "prose": ("no captions",),
    "changes": ("change",),
    "geometry": ("uniformity", "alignment", "energy"),
    "transfer": ("transfer",),
    "senteval-transfer": ("senteval-transfer",),
    "csts": ("csts",),
}
"""Measures of the tables beside the test scores."""


STAMPS = (
    "hardware", "python", "torch", "transformers", "cselab", "commit", "source", "translators",
)  # fmt: skip
"""Facts of a run's environment that a report names."""


class Tables(NamedTuple):
    """The tables of a store.

    Attributes:
        against: The label that others are compared with.
        rows: The scores, as `comparable_scores` gives them.
        numbers: Tables by name, a label a row; `texts` are the same for a reader.
        notes: Sentences on what the tables leave out, and on the conditions.
    """

    against: str
    rows: pandas.DataFrame
    numbers: dict[str, pandas.DataFrame]
    texts: dict[str, pandas.DataFrame]
    notes: list[str]


def read_tables(
    store: Path,
    *,
    against: str | None = None,
    only: Sequence[str] = ("*",),
    claims: Path | None = None,
) -> Tables:
    """Make the tables of a store: "claims", "scores", "prose", "changes", "geometry", "transfer",
    "senteval-transfer", "csts".

    A table is left out if the store has none of its measures.

    Args:
        store, against, only: As in `comparable_scores`, whose errors it raises.
        claims: A file of papers' claims, checked against the rows (`cselab.study.claims`).
    """
    rows, runs = comparable_scores(store, against=against, only=only), Store(store).runs()
    numbers, against = _tables(rows, rows.label.iloc[0])
    notes = _left_out(rows, Store(store).scores())
    shown = numbers["scores"].index
    others = [label for label in dict.fromkeys(rows.label) if label not in shown]
    if others and (rows.measure == "test").any():
        notes.append(f"Without test scores, only in tables/rows.csv: {', '.join(others)}.")
    if few := [label for label, seeds in numbers["scores"].seeds.items() if seeds < FEWEST_SEEDS]:
        notes.append(
            f"{', '.join(few)}: fewer than {FEWEST_SEEDS} seeds, so no difference, interval or p."
        )
    notes += _conditions(runs[runs.key.isin(rows.key)]) + _failures(runs)
    numbers = {name: table.rename(index=one_line) for name, table in numbers.items()}
    rows, against = rows.assign(label=rows.label.map(one_line)), one_line(against)
    texts = {name: as_texts(table, DIGITS[name]) for name, table in numbers.items()}
    if claims:
        numbers["claims"] = check_claims(rows, read_claims(claims))
        texts = {"claims": shown_claims(numbers["claims"]), **texts}
    return Tables(against, rows, numbers, texts, notes)


@functools.cache
def printed_averages() -> dict[str, float]:
    """BERT-base's averages by the rows of JTCSE's Table I (https://arxiv.org/abs/2505.02366) and,
    for methods that it lacks, of ImSimCSE's Table 3 (https://arxiv.org/abs/2305.13192)."""
    return {**papers.sts("imsimcse", "3").average, **papers.sts("jtcse", "I").average}


def _left_out(rows: pandas.DataFrame, scores: pandas.DataFrame) -> list[str]:
    """Sentences on older runs of the rows, and on rows of several versions of the library."""
    run, measured = ["label", "seed"], ["label", "seed", "measure"]
    known = scores.set_index(run).index.isin(rows.set_index(run).index)
    older = scores[known & ~scores.key.isin(rows.key)]
    lost = older.set_index(measured).index.difference(rows.set_index(measured).index)
    sources = rows.source.unique()
    notes = []
    if not older.empty:
        notes.append(f"{older.key.nunique()} older runs of the same label and seed are left out.")
    if not lost.empty:
        measures = ", ".join(lost.unique("measure"))
        notes.append(
            f"Among them are scores that the newer runs do not have ({measures}): a sweep with "
            "other measures needs a --store of its own."
        )
    if len(sources) > 1:
        listed = ", ".join(sources)
        notes.append(f"The runs are by {len(sources)} versions of the library's source ({listed}).")
    return notes


def _tables(scores: pandas.DataFrame, against: str) -> tuple[dict[str, pandas.DataFrame], str]:
    """Means over seeds, a label a row, and the row that the scores are compared with."""
    table, against = _scores(scores, against)
    tables = {"scores": table}
    for name, measures in MEASURES.items():
        some = scores[scores.measure.isin(measures)]
        if not some.empty:
            columns = "measure" if len(measures) > 1 else "task"
            tables[name] = some.pivot_table(
                index="label", columns=columns, values="value", sort=False
            )
    return tables, against


def _scores(scores: pandas.DataFrame, against: str) -> tuple[pandas.DataFrame, str]:
    scores = scores[~scores.measure.isin(LONG)]
    test = scores[scores.measure == ("test" if (scores.measure == "test").any() else "dev")]
    if test.empty:  # notebooks record under their methods' names
        test = scores.assign(label=scores.label + ": " + scores.measure, measure="test")
        against = test.label.iloc[0]
    if not (test.task == "average").any():  # a choice by the dev split alone is one task
        means = test.groupby(["label", "seed"], sort=False).value.mean()
        averages = means.rename("average").reset_index()
    else:
        averages = test[test.task == "average"].rename(columns={"value": "average"})
    averages = averages[["label", "seed", "average"]].rename(columns={"label": "method"})
    table = compare_methods(averages, against)
    tasks = [task for task in dict.fromkeys(test.task) if task != "average"]
    means = test.pivot_table(index="label", columns="task", values="value", sort=False)
    if len(tasks) > 1:
        table = means[tasks].join(table, how="right")
    dev = scores[scores.measure == "dev"].groupby("label").value.mean()
    table.insert(table.columns.get_loc("seeds") + 1, "dev", dev.reindex(table.index))
    if set(tasks) == set(STS7):
        methods = scores.groupby("label")["method"].first()
        methods = methods[~methods.duplicated(keep=False)]  # which variant is the paper's is open
        # a class that inherits from another method's has a row of a paper only if it names its own
        rows = {name: vars(registered(name)).get("paper_row", "") for name in method_names()}
        table["paper"] = methods.map(rows).map(printed_averages()).reindex(table.index)
    return table.reindex(list(dict.fromkeys(test.label))), against


def _failures(runs: pandas.DataFrame) -> list[str]:
    """A sentence for each failed run that was not finished since."""
    finished = set(runs[runs.state == "done"].set_index(["label", "seed"]).index)
    return [
        f"FAILED: {run.label}, seed {run.seed}: {run.error}"
        for run in runs[runs.state == "failed"].itertuples()
        if (run.label, run.seed) not in finished
    ]


def _conditions(runs: pandas.DataFrame) -> list[str]:
    """Versions, hardware, time: a sentence each."""
    environments = [read_object(text) for text in runs.environment]
    damaged = [key for key, one in zip(runs.key, environments, strict=True) if one is None]
    known = list(filter(None, environments))
    facts = {
        key: ", ".join(sorted({str(one[key]) for one in known if one.get(key)})) for key in STAMPS
    }
    time, data = clock(runs.seconds.sum()), ", ".join(runs.data.unique())
    versions = "; ".join(f"{key} {value}" for key, value in facts.items() if value)
    return [
        f"{versions}; data {data}.",
        f"{len(runs)} runs, {time} of one worker in total, without the trainings that runs share.",
        *(f"The environment of the run {key} is damaged in the store." for key in damaged),
    ]
