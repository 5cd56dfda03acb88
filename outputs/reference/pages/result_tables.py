"""The tables of outputs/reference and of the README, each made from the recorded stores.

A function is a kind of table; its arguments are those of a marker or a template (`results.py`).
"""

import claim_tables
import pandas
import speed_tables
from result_values import TEXTS, hardware
from second_backbone import climb, climbs

from cselab.experiments.store import Store
from cselab.study import papers
from cselab.study.recorded import store
from cselab.study.tables import printed_averages, read_tables

GRIDS = (
    "real-climb",
    "synthetic-tune-towers",
    "real-tune-towers",
    "synthetic-tune-twins",
    "real-tune-twins",
    *claim_tables.GRIDS,
    "real-round-trips",
)
"""Recorded grids, in the order in which they ran."""
PILOT = 67
"""Seconds of a run, two at a time on two cores, measured on a few runs before the others."""
HEADLINE = {
    "untrained (first_last)": "BERT-base",
    "SimCSE": "SimCSE",
    "sum of two towers": "TNCSE, dual encoder, untrained",
    "TNCSE": "TNCSE",
    "JTCSE": "JTCSE",
}
"""Labels of the README's table by their rows in JTCSE's Table I, and the sum in TNCSE's Table 3."""
STUDIES = {
    "captions-modes": ("captions, twice", ["captions, *"]),
    "wikipedia-modes": ("Wikipedia, twice", ["Wikipedia, *"]),
}
"""By name: the row that others are compared with, and these."""
SHOWN = [
    "average",
    "sd",
    "seeds",
    "dev",
    "difference",
    "95 % interval",
    "p (Holm)",
    "seeds for 80 % power",
]


def headline() -> pandas.DataFrame:
    """Mean, spread and difference from the sum of towers on both texts, with the papers' settings,
    of the rows that a reader looks for."""
    labels = list(HEADLINE)
    table = pandas.DataFrame(index=labels)
    for text in TEXTS:
        tables = read_tables(store(f"{text}-papers"), against="sum of two towers", only=labels)
        rows = tables.texts["scores"].reindex(labels)
        seeds = " or ".join(sorted(set(rows.seeds)))
        table[f"{text}, {seeds} seeds"] = rows.average + " ± " + rows.sd
        table[f"{text}: − sum"] = (rows.difference + " " + rows["95 % interval"]).str.strip()
    summed = papers.rows("tncse", "3").query("variant == 'dual encoder, untrained'").value.item()
    paper = {**printed_averages(), "TNCSE, dual encoder, untrained": summed}
    return table.assign(**{"paper's BERT-base": [f"{paper[row]:.2f}" for row in HEADLINE.values()]})


def study(name: str, rows: str) -> pandas.DataFrame:
    """Scores of a study's rows in a store."""
    against, only = STUDIES[rows]
    return read_tables(store(name), against=against, only=only).texts["scores"][SHOWN]


def hours() -> pandas.DataFrame:
    """Runs and hours of each grid, planned and recorded, and where its runs ran."""
    table = {}
    for grid in GRIDS:
        planned = len(claim_tables.declared_runs(grid))
        runs = Store(store(grid)).runs()
        failed = (runs.state == "failed").sum()
        machines = hardware(runs).value_counts().drop("", errors="ignore")  # of failed runs
        table[grid] = {
            "runs planned": str(planned),
            "hours planned": f"{planned * PILOT / 3600:.1f}",
            "runs": f"{len(runs) - failed}{f', {failed} diverged' if failed else ''}",
            "hours": f"{runs.seconds.sum() / 3600:.1f}",
            "machines": "; ".join(f"{name}: {count}" for name, count in machines.items()),
        }
    return pandas.DataFrame.from_dict(table, orient="index")


KINDS = {
    "claims": claim_tables.claims,
    "contrasts": claim_tables.contrasts,
    "counts": claim_tables.counts,
    "evidence": claim_tables.evidence,
    "no-captions": claim_tables.no_captions,
    "scores": claim_tables.scores,
    "headline": headline,
    "study": study,
    "hours": hours,
    "climb": climb,
    "climbs": climbs,
    "growth": speed_tables.growth,
    "profile": speed_tables.profile,
    "speeds": speed_tables.speeds,
    "sweeping": speed_tables.sweeping,
    "times": speed_tables.times,
    "translators": speed_tables.translators,
    "viewers": speed_tables.viewers,
}
"""The functions by the names that markers give them."""
