"""The tables of outputs/reference and of the README, each made from the recorded stores.

A function is a kind of table; its arguments are those of a marker or a template
(`docs/results.py`).
"""

import statistics
from functools import cache

import claim_tables
import pandas
from result_rows import HEADLINE, PRINTED, SHOWN, STUDIES
from result_sources import sources
from result_values import hardware
from second_backbone import climb, climbs
from speed_tables import benchmarks, growth, profile, speeds, sweeping, times, translators, viewers

from cselab.data.sts import STS7
from cselab.evaluation import compare_methods
from cselab.reporting import papers
from cselab.reporting.recorded import TEXTS, methods, store
from cselab.reporting.rows import read_rows
from cselab.reporting.tables import Tables, printed_averages, read_tables
from cselab.sweep.store import Store

EDITION = (
    "real-climb",
    "synthetic-tune-towers",
    "real-tune-towers",
    "synthetic-tune-twins",
    "real-tune-twins",
    *claim_tables.GRIDS,
    "real-round-trips",
)
"""Grids of this edition, in the order in which they ran."""
PILOT = 67
"""Seconds of a run, two at a time on two cores, measured on a few runs before the others."""


def labels_of(grid: str) -> list[str]:
    """The labels of a grid's file, in its order; a text's main table has the grid of its name."""
    return list(methods(grid))


@cache
def compared(name: str, against: str, only: tuple[str, ...]) -> Tables:
    """Some rows of a store, compared with one of them."""
    return read_tables(store(name), against=against, only=only)


def main_rows(text: str) -> Tables:
    """The rows of a text's main table, compared with SimCSE."""
    return compared(text, "SimCSE", tuple(labels_of(text)))


def ordered(table: pandas.DataFrame, labels: list[str]) -> pandas.DataFrame:
    """The rows of a table in the order of `labels`; labels without a row are left out."""
    return table.reindex([label for label in labels if label in table.index])


def main_table(text: str) -> pandas.DataFrame:
    """The main table of a text."""
    table = ordered(main_rows(text).texts["scores"], labels_of(text))[SHOWN]
    return table.assign(**{"paper's BERT-base": [printed(label) for label in table.index]})


def printed(label: str) -> str:
    """The average that the papers print for a label, or nothing."""
    return f"{printed_averages()[PRINTED[label]]:.2f}" if label in PRINTED else ""


def headline() -> pandas.DataFrame:
    """Mean, spread and difference from the sum of towers on both texts, with the papers' settings,
    of the rows that a reader looks for."""
    labels = list(HEADLINE)
    table = pandas.DataFrame(index=labels)
    for text in TEXTS:
        rows = compared(f"{text}-papers", "sum of two towers", tuple(labels))
        found = rows.texts["scores"].reindex(labels)
        seeds = " or ".join(sorted(set(found.seeds)))
        table[f"{text}, {seeds} seeds"] = found.average + " ± " + found.sd
        table[f"{text}: − sum"] = (found.difference + " " + found["95 % interval"]).str.strip()
    summed = papers.rows("tncse", "3").query("variant == 'dual encoder, untrained'").value.item()
    paper = {**printed_averages(), "TNCSE, dual encoder, untrained": summed}
    return table.assign(**{"paper's BERT-base": [f"{paper[row]:.2f}" for row in HEADLINE.values()]})


def means(text: str, name: str) -> pandas.DataFrame:
    """Phenomena or geometry of the main table's rows."""
    return ordered(main_rows(text).texts[name], labels_of(text))


def transfer(text: str) -> pandas.DataFrame:
    """Accuracy on the transfer tasks, and the difference of its average from SimCSE."""
    tables = read_tables(store(f"{text}-transfer"), against="SimCSE")
    found = compare_methods(averages(tables.rows, "transfer"), "SimCSE")
    texts = tables.texts["transfer"]
    found = found.reindex(texts.index)
    texts["sd"], texts["seeds"] = found.sd.map("{:.2f}".format), found.seeds.map(str)
    texts["average − SimCSE"] = differences(found)
    return ordered(texts, labels_of(text))


def averages(rows: pandas.DataFrame, measure: str) -> pandas.DataFrame:
    """What `compare_methods` takes: each run's average over the tasks of one measure."""
    rows = rows.drop(columns="method").rename(columns={"label": "method", "value": "average"})
    rows = rows[(rows.measure == measure) & (rows.task == "average")]
    return rows[["method", "seed", "average"]]


def differences(found: pandas.DataFrame) -> list[str]:
    """Differences of `compare_methods` with their intervals, as texts."""
    return [
        ""
        if pandas.isna(row.difference)
        else f"{row.difference:+.2f} [{row.low:+.2f}, {row.high:+.2f}]"
        for row in found.itertuples()
    ]


def sums(text: str) -> pandas.DataFrame:
    """The gain of a second tower, added without joint training, objective by objective; and JTCSE
    beside the sum."""
    pairs = summed(labels_of(text), ", I + II")
    return second_towers(averages(main_rows(text).rows, "test"), pairs, "JTCSE, parallel")


def fair(text: str) -> pandas.DataFrame:
    """The same of the papers' baselines, with one budget, beside TNCSE's Table 3, which JTCSE
    prints again."""
    pairs = {"simcse": "towers"} | summed(labels_of(f"baselines-{text}"), "_towers")
    table = second_towers(averages(baseline_tables(text).rows, "test"), pairs, "jtcse")
    two = papers.rows("tncse", "3").query("variant == 'dual encoder'").set_index("model").value
    one = printed_averages()
    for name in pairs:
        model = PRINTED[name]
        table.loc[name, "paper: gain of the second"] = f"{two[model] - one[model]:+.2f}"
        table.loc[name, "paper: JTCSE − the sum"] = f"{one['JTCSE'] - two[model]:+.2f}"
    return table


def summed(labels: list[str], suffix: str) -> dict[str, str]:
    """Labels of single towers, each with the label of its sum, which ends in `suffix`."""
    return {label.removesuffix(suffix): label for label in labels if label.endswith(suffix)}


def second_towers(rows: pandas.DataFrame, pairs: dict[str, str], twin: str) -> pandas.DataFrame:
    """A row a method: the scores of one tower and of two, and the twin's difference from the sum.

    pairs: labels of single towers with those of their sums.
    """
    table = {}
    for one, both in pairs.items():
        found = compare_methods(rows[rows.method.isin([one, both])], one)
        joint = compare_methods(rows[rows.method.isin([both, twin])], both)
        scores = found.average.map("{:.2f}".format)
        gain, further = differences(found.loc[[both]]), differences(joint.loc[[twin]])
        table[one] = [*scores[[one, both]], *gain, *further]
    columns = ["one tower", "two, summed", "gain of the second", "JTCSE − the sum"]
    return pandas.DataFrame.from_dict(table, orient="index", columns=columns)


def study(text: str, name: str) -> pandas.DataFrame:
    """The scores of a study's rows."""
    return study_tables(text, name).texts["scores"][SHOWN]


@cache
def study_tables(text: str, name: str) -> Tables:
    """A study over the seeds that all its rows have; rows of the main table have more."""
    against, only = STUDIES[name]
    seeds = read_rows(store(text), against=against, only=only).groupby("label").seed.agg(set)
    common = set.intersection(*seeds)
    return read_tables(store(text), against=against, only=only, seeds=common)


def captions(text: str, name: str = "") -> pandas.DataFrame:
    """The rows of the main table, or of a study, over all test pairs, and without captions."""
    found = study_tables(text, name) if name else main_rows(text)
    table = {}
    for part, measure in {"all pairs": "test", "no captions": "no captions"}.items():
        scores = compare_methods(averages(found.rows, measure), found.against)
        table[part] = scores.average.map("{:.2f}".format)
        table[f"{part}: − {found.against}"] = differences(scores)
    order = list(found.texts["scores"].index) if name else labels_of(text)
    return ordered(pandas.DataFrame(table), order)


@cache
def baseline_tables(text: str) -> Tables:
    """The recorded baselines of a text, compared with SimCSE."""
    return read_tables(store(f"baselines-{text}"), against="simcse")


def baselines(text: str) -> pandas.DataFrame:
    """Every method of the grid of baselines, with the cost of a step of its training
    (`benchmarks/bench.py --only g`)."""
    table = ordered(baseline_tables(text).texts["scores"], labels_of(f"baselines-{text}"))
    figures = benchmarks()
    costs = {
        name.removesuffix(" step"): cost
        for name, cost in figures.items()
        if cost["benchmark"] == "g"
    }
    base = 64 / statistics.median(cost["peer_s"] for cost in costs.values())  # SimCSE's own speed
    shares = {"simcse": 1.0, **{name: cost["median"] for name, cost in costs.items()}}
    speeds = {name: f"{share * base:.0f} ({share:.2f})" for name, share in shares.items()}
    table["sentences/s"] = [speeds.get(name, "") for name in table.index]
    table["paper's BERT-base"] = [printed(name) for name in table.index]
    tasks = [task for task in STS7 if task in table]
    return table[[*tasks, *SHOWN, "sentences/s", "paper's BERT-base"]]


def orders() -> pandas.DataFrame:
    """Spearman correlation of the methods' averages here and in the papers, over the trained
    methods that the papers print."""
    columns = {text: baseline_tables(text).numbers["scores"].average for text in TEXTS}
    table = pandas.DataFrame(columns).drop(["flow", "whitened", "first-last average"])
    table["papers"] = table.index.map(PRINTED).map(printed_averages())
    found = table.dropna().corr(method="spearman").map("{:+.2f}".format)
    return found.rename(columns={"papers": f"papers ({len(table.dropna())} methods)"})


def hours() -> pandas.DataFrame:
    """Runs and hours of each grid of this edition, planned and recorded, and where its runs ran."""
    table = {}
    for grid in EDITION:
        planned = len(claim_tables.declared_runs(grid))
        row = {"runs planned": str(planned), "hours planned": f"{planned * PILOT / 3600:.1f}"}
        runs = Store(store(grid)).runs()
        failed = (runs.state == "failed").sum()
        recorded = f"{len(runs) - failed}{f', {failed} diverged' if failed else ''}"
        spent = f"{runs.seconds.sum() / 3600:.1f}"
        table[grid] = row | {"runs": recorded, "hours": spent, "machines": _machines(runs)}
    return pandas.DataFrame.from_dict(table, orient="index")


def _machines(runs: pandas.DataFrame) -> str:
    """Their names with the number of runs of each; a failed run has none."""
    counts = hardware(runs).value_counts()
    return "; ".join(f"{name}: {count}" for name, count in counts.items() if name)


KINDS = {
    "speeds": speeds,
    "profile": profile,
    "growth": growth,
    "sweeping": sweeping,
    "viewers": viewers,
    "times": times,
    "translators": translators,
    "headline": headline,
    "claims": claim_tables.claims,
    "contrasts": claim_tables.contrasts,
    "counts": claim_tables.counts,
    "evidence": claim_tables.evidence,
    "no-captions": claim_tables.no_captions,
    "scores": claim_tables.scores,
    "earlier": claim_tables.earlier,
    "changes": claim_tables.changes,
    "main": main_table,
    "means": means,
    "study": study,
    "baselines": baselines,
    "orders": orders,
    "captions": captions,
    "transfer": transfer,
    "sums": sums,
    "fair": fair,
    "sources": sources,
    "hours": hours,
    "climb": climb,
    "climbs": climbs,
}
"""The functions by the names that markers give them."""
