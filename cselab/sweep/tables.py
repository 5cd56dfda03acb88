"""Tables of a store: over seeds, with paired tests, the papers' figures beside ours."""

import json
import re
from collections.abc import Collection, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import NamedTuple

import pandas

from cselab import reported
from cselab.data.sts import STS7
from cselab.errors import DataError, suggest
from cselab.evaluation import compare_methods
from cselab.sweep.claims import check_claims, read_claims, shown_claims
from cselab.sweep.store import Store

PAPERS = {
    "flow": "BERT-flow", "whitened": "BERT-whitening", "simcse": "SimCSE", "consert": "ConSERT", "esimcse": "ESimCSE", "diffcse": "DiffCSE",
    "arccse": "ArcCSE", "infocse": "InfoCSE", "promptbert": "PromptBERT", "pcl": "PCL", "sncse": "SNCSE", "whitenedcse": "WhitenedCSE",
    "promcse": "PromCSE", "rankcse": "RankCSE", "scd": "SCD-BERT", "imsimcse": "ImSimCSE", "edfse": "EDFSE", "tncse": "TNCSE",
    "jtcse": "JTCSE", "edfse_d": "EDFSE D", "tncse_d": "TNCSE D", "jtcse_d": "JTCSE D", "uc": "JTCSE+UC", "uc_d": "JTCSE+UC D",
}  # fmt: skip
"""Systems by their rows in Table I of JTCSE or Table 3 of ImSimCSE (BERT-base)."""
TEXT = ("corpus", "sentences", "nli", "triplets")
"""Settings that say what is trained on; rows of one table may differ in them."""
HEADS = {
    "average": "average", "sd": "sd", "seeds": "seeds", "dev": "dev", "difference": "difference", "interval": "95 % interval", "p": "p",
    "p_holm": "p (Holm)", "seeds_needed": "seeds for 80 % power", "paper": "paper's BERT-base",
}  # fmt: skip
DIGITS = {"scores": 2, "prose": 2, "phenomena": 1, "geometry": 3, "transfer": 1}


class Tables(NamedTuple):
    """Of a store. against: the label that others are compared with. rows: the numbers, one run a label and seed. numbers: tables by name,
    a label a row. texts: the same for a reader. notes: what the tables leave out, and the conditions, a sentence each."""

    against: str
    rows: pandas.DataFrame
    numbers: dict[str, pandas.DataFrame]
    texts: dict[str, pandas.DataFrame]
    notes: list[str]


def read_tables(
    store: Path, *, against: str | None = None, only: Sequence[str] = ("*",), seeds: Collection[int] | None = None,
    claims: Path | None = None,
) -> Tables:  # fmt: skip
    """ "claims", "scores", "prose", "phenomena", "geometry", "transfer": as many as were measured.

    The baseline is the first row, the rest follow by their names and numbers, whichever was finished first.
    against: a label, the first of the store by default. only: labels, * and ? as in a shell. seeds: these alone. claims: a file of
    papers' claims, checked against the rows (`cselab.sweep.claims`).
    Raises DataError for no store, a store without finished runs, an unknown label, seeds that were not run, and runs on several
    kinds of data: their scores belong in no table.
    """
    if not store.is_file():
        raise DataError(f"no store {store}; `cselab sweep` makes one")
    scores, runs = Store(store).scores(), Store(store).runs()
    if scores.empty:
        raise DataError(f"store {store} has no finished run ({len(runs)} failed); `cselab sweep` goes on with it")
    against = against or scores.label.iloc[0]
    if against not in set(scores.label):
        raise DataError(f"no runs of {against!r} to compare with; {suggest(against, set(scores.label))}")
    scores = scores[[label == against or any(fnmatchcase(label, one) for one in only) for label in scores.label]]
    if seeds is not None:
        if not scores.seed.isin(seeds).any():
            raise DataError(
                f"store {store} has no runs of the seeds {sorted(seeds)}, only of {sorted(set(scores.seed))}"
            )
        scores = scores[scores.seed.isin(seeds)]
    scores, notes = _newest(scores, runs, store)
    order = sorted(set(scores.label), key=lambda label: (label != against, by_number(label)))
    scores = scores.sort_values("label", key=lambda labels: labels.map(order.index), kind="stable")
    numbers = _tables(scores, against)
    others = [label for label in dict.fromkeys(scores.label) if label not in numbers["scores"].index]
    if others and (scores.measure == "test").any():
        notes.append(f"Scores that notebooks recorded ({', '.join(others)}) are in tables/rows.csv.")
    finished = set(runs[runs.state == "done"].set_index(["label", "seed"]).index)
    failed = [run for run in runs[runs.state == "failed"].itertuples() if (run.label, run.seed) not in finished]
    notes += _conditions(runs[runs.key.isin(scores.key)])
    notes += [f"FAILED: {run.label}, seed {run.seed}: {run.error}" for run in failed]
    texts = {name: _shown(table, DIGITS[name]) for name, table in numbers.items()}
    if claims:
        numbers["claims"] = check_claims(scores, read_claims(claims))
        texts = {"claims": shown_claims(numbers["claims"]), **texts}
    return Tables(against, scores, numbers, texts, notes)


def by_number(label: str) -> list[str | float]:
    """Sorts labels by their words and numbers: "M = 32" before "M = 128"."""
    return [float(part) if i % 2 else part for i, part in enumerate(re.split(r"(\d+(?:\.\d+)?)", label.casefold()))]


def printed_averages() -> dict[str, float]:
    """What JTCSE's Table I and, for the rest, ImSimCSE's Table 3 print for BERT-base, by the tables' own names."""
    return {**reported.sts("imsimcse", "3").average, **reported.sts("jtcse", "I").average}


def markdown(table: pandas.DataFrame) -> str:
    """A table of texts in Markdown."""
    lines = ["| | " + " | ".join(map(str, table.columns)) + " |", "|---" * (len(table.columns) + 1) + "|"]
    rows = zip(table.index, table.to_numpy().tolist(), strict=True)
    return "\n".join([*lines, *(f"| {label} | " + " | ".join(row) + " |" for label, row in rows)])


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
    """By name: scores; then, where they were measured, scores without captions, phenomena, geometry and transfer. Labels are rows, means
    over seeds."""
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
        systems = scores.groupby("label").what.first()
        systems = systems[
            ~systems.duplicated(keep=False)
        ]  # of variants of a system none is the paper's row for certain
        table["paper"] = systems.map(PAPERS).map(printed_averages()).reindex(table.index)
    tables = {"scores": table.reindex(list(dict.fromkeys(test.label)))}
    for name, measures in {
        "prose": ["no captions"],
        "phenomena": ["phenomenon"],
        "geometry": ["uniformity", "alignment", "energy"],
        "transfer": ["transfer"],
    }.items():
        some = scores[scores.measure.isin(measures)]
        if not some.empty:
            columns = "measure" if len(measures) > 1 else "task"
            tables[name] = some.pivot_table(index="label", columns=columns, values="value", sort=False)
    return tables


def _conditions(runs: pandas.DataFrame) -> list[str]:
    """Versions, hardware, time: a sentence each."""
    environments = [json.loads(text) for text in runs.environment]
    facts = {
        key: ", ".join(sorted({str(found[key]) for found in environments if found.get(key)}))
        for key in ("hardware", "python", "torch", "transformers", "cselab", "commit", "source")
    }
    hours = runs.seconds.sum() / 3600
    return [
        "; ".join(f"{key} {value}" for key, value in facts.items() if value)
        + f"; data {', '.join(runs.data.unique())}.",
        f"{len(runs)} runs, {hours:.1f} hours of one worker in all, trainings that they share left out.",
    ]


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
            (f"{value:,.0f}" if power else "no number") if k else ""
            for value, power, k in zip(table.seeds_needed, table.power, known, strict=True)
        ]
        order = [name for name in HEADS if name in table]
        rest = [name for name in table.columns if name not in (*HEADS, "low", "high", "power")]
        table = table[[*rest, *order]].rename(columns=HEADS)
    table = table.rename_axis(None, axis=1).rename_axis(None, axis=0)
    return table.map(
        lambda value: value if isinstance(value, str) else "" if pandas.isna(value) else f"{value:.{digits}f}"
    )
