"""The tables of outputs/reference and of the README, each made from the recorded stores.

A function is a kind of table; its arguments are those of a marker or a template (`results.py`).
"""

import claim_tables
import joint_study
import pandas
import speed_tables
from result_values import TEXTS, environments, gain, scores

from cselab.experiments.store import Store
from cselab.study import papers
from cselab.study.pretraining.gate import FLOORS
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
    **dict.fromkeys(FLOORS, ""),
    "pretrained only (first_last)": "BERT-base",
    "SimCSE": "SimCSE",
    "sum of two towers": "TNCSE, dual encoder, untrained",
    "JTCSE: nce": "JTCSE, nce",
    "TNCSE": "TNCSE",
    "JTCSE": "JTCSE",
}
"""Labels of the README's table by their rows in the papers' tables; "" where there is none."""
TWO_TOWERS = ("sum of two towers", "TNCSE", "JTCSE")
ALONE = "JTCSE: nce"
"""Its towers continued alone: InfoNCE acts inside each."""
NAMES = {ALONE: "towers continued alone", "sum of two towers": "sum of the towers"}
"""The README's names of labels."""
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
    """Mean and spread on both texts, with the papers' settings, of the floors and of the methods;
    what each method adds to its towers continued alone."""
    summed = papers.rows("tncse", "3").query("variant == 'dual encoder, untrained'").value.item()
    alone = papers.rows("jtcse", "X").query("variant == 'nce' and task == 'avg7'").value.item()
    paper = {**printed_averages(), "TNCSE, dual encoder, untrained": summed, "JTCSE, nce": alone}
    table = pandas.DataFrame(index=list(HEADLINE))
    for text in TEXTS:
        grid = f"{text}-papers"
        rows = {label: scores(grid, label) for label in HEADLINE}
        table[text] = [
            f"{values.mean():.1f}" + (f" ± {values.std():.1f}" if values.std() > 0.005 else "")
            for values in rows.values()
        ]
        table[f"{text}: − alone"] = [
            gain(grid, label, ALONE) if label in TWO_TOWERS else "" for label in HEADLINE
        ]
    table["paper's BERT-base"] = [f"{paper[row]:.2f}" if row else "" for row in HEADLINE.values()]
    return table.rename(index=NAMES)


def machines() -> pandas.DataFrame:
    """Runs and seeds of each grid by machine, torch and commit, as the stores have them."""
    runs = pandas.concat([environments(grid).assign(grid=grid) for grid in GRIDS])
    runs = runs.rename(columns={"hardware": "machine"})
    seeds = runs.groupby(["grid", "machine", "torch", "commit"]).seed
    table = seeds.agg(
        runs=lambda some: str(len(some)),
        seeds=lambda some: ", ".join(map(str, sorted(set(some)))),
    )
    return table.reset_index().set_index("grid").loc[list(GRIDS)]


def study(name: str, rows: str) -> pandas.DataFrame:
    """Scores of a study's rows in a store."""
    against, only = STUDIES[rows]
    return read_tables(store(name), against=against, only=only).texts["scores"][SHOWN]


def hours() -> pandas.DataFrame:
    """Runs and hours of each grid, planned and recorded."""
    table = {}
    for grid in GRIDS:
        planned = len(claim_tables.declared_runs(grid))
        runs = Store(store(grid)).runs()
        failed = (runs.state == "failed").sum()
        table[grid] = {
            "runs planned": str(planned),
            "hours planned": f"{planned * PILOT / 3600:.1f}",
            "runs": f"{len(runs) - failed}{f', {failed} diverged' if failed else ''}",
            "hours": f"{runs.seconds.sum() / 3600:.1f}",
        }
    return pandas.DataFrame.from_dict(table, orient="index")


KINDS = {
    "claims": claim_tables.claims,
    "counts": claim_tables.counts,
    "evidence": claim_tables.evidence,
    "no-captions": claim_tables.no_captions,
    "scores": claim_tables.scores,
    "headline": headline,
    "study": study,
    "hours": hours,
    "joint": joint_study.table,
    "joint-scores": joint_study.scores,
    "joint-curves": joint_study.curves,
    "machines": machines,
    "growth": speed_tables.growth,
    "profile": speed_tables.profile,
    "speeds": speed_tables.speeds,
    "sweeping": speed_tables.sweeping,
    "times": speed_tables.times,
    "translators": speed_tables.translators,
    "viewers": speed_tables.viewers,
}
"""The functions by the names that markers give them."""
