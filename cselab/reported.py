"""What the papers report: their tables as numbers, so that a notebook can draw ours beside theirs.

Values are as printed; `source_note` says where a cell or an average looks wrong. The errata page is data/reported/ERRATA.md.
"""

import functools

import pandas

from cselab.data.sources import embedded_dir
from cselab.errors import DataError, suggest

PAPERS = {
    "jtcse": "JTCSE", "jtcse-readme": "JTCSE's code repository", "tncse": "TNCSE", "tncse-supplement": "TNCSE, supplement",
    "tncse-readme": "TNCSE's code repository", "imsimcse": "ImSimCSE (SimCSE++)", "bellm": "BeLLM",
}  # fmt: skip
OUR_NAMES = {"STSB": "STSBenchmark", "SICKR": "SICK-R"}
"""Tasks of the seven under the names that `evaluate_sts` gives them."""


def rows(paper: str, table: str | None = None) -> pandas.DataFrame:
    """Every cell of a paper's tables: table, backbone, model, variant, task, metric, value, source_note; table as numbered there.

    Raises DataError, with the nearest name, for an unknown paper or table.
    """
    if paper not in PAPERS:
        raise DataError(f"unknown paper {paper!r}; {suggest(paper, PAPERS)}")
    found = _all()[_all().paper == paper]
    if table is not None:
        if table not in set(found.table):
            raise DataError(f"{PAPERS[paper]} has no table {table!r}; {suggest(table, set(found.table))}")
        found = found[found.table == table]
    return found.reset_index(drop=True)


def sts(paper: str, table: str, *, backbone: str = "bert-base") -> pandas.DataFrame:
    """Models (rows) by the seven STS tasks and their printed average, Spearman x100, of one table and backbone.

    Raises DataError where the table has no STS scores for the backbone.
    """
    found = rows(paper, table)
    found = found[(found.backbone == backbone) & (found.metric == "spearman100")]
    found = found.assign(task=found.task.replace({**OUR_NAMES, "avg7": "average"}))
    order = ["STS12", "STS13", "STS14", "STS15", "STS16", "STSBenchmark", "SICK-R", "average"]
    found = found[found.task.isin(order)]
    if found.empty:
        raise DataError(
            f"table {table} of {PAPERS[paper]} has no STS scores of {backbone!r}; {suggest(backbone, set(rows(paper, table).backbone))}"
        )
    names = found.model + found.variant.map(lambda variant: f" ({variant})" if variant else "")
    wide = found.assign(model=names).pivot_table(index="model", columns="task", values="value", sort=False)
    return wide.reindex(columns=[task for task in order if task in wide.columns])


@functools.cache
def _all() -> pandas.DataFrame:
    path = embedded_dir() / "reported" / "reported.csv"
    return pandas.read_csv(path, keep_default_na=False, dtype={"table": str}).astype({"value": float})
