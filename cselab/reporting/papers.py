"""What the papers report: the numbers of their tables, for comparison with ours.

Values are as printed; `source_note` says where a cell or an average looks wrong. The errata page is
data/reported/ERRATA.md.
"""

import functools

import pandas

from cselab.data.sources import embedded_dir
from cselab.errors import DataError, suggest

PAPERS = {
    "jtcse": "JTCSE",
    "jtcse-readme": "JTCSE's code repository",
    "tncse": "TNCSE",
    "tncse-supplement": "TNCSE, supplement",
    "tncse-readme": "TNCSE's code repository",
    "imsimcse": "ImSimCSE (SimCSE++)",
    "bellm": "BeLLM",
}
OUR_NAMES = {"STSB": "STSBenchmark", "SICKR": "SICK-R", "avg7": "average"}
"""Tasks by the papers' names, with the names that `evaluate_sts` gives them."""
COLUMNS = ("STS12", "STS13", "STS14", "STS15", "STS16", "STSBenchmark", "SICK-R", "average")


def rows(paper: str, table: str | None = None) -> pandas.DataFrame:
    """Every cell of a paper's tables, or of one table.

    Args:
        paper: A key of PAPERS.
        table: Printed number of the table; None: all tables.

    Returns:
        Columns paper, table, backbone, model, variant, task, metric, value, source_note.

    Raises:
        DataError: With the nearest name, for an unknown paper or table.

    Examples:
        >>> from cselab.reporting import papers
        >>> cells = papers.rows("jtcse", "I")
        >>> list(cells.columns)
        ['paper', 'table', 'backbone', 'model', 'variant', 'task', 'metric', 'value', 'source_note']
    """
    if paper not in PAPERS:
        raise DataError(f"unknown paper {paper!r}; {suggest(paper, PAPERS)}")
    found = _all()[_all().paper == paper]
    if table is not None:
        if table not in set(found.table):
            hint = suggest(table, set(found.table))
            raise DataError(f"{PAPERS[paper]} has no table {table!r}; {hint}")
        found = found[found.table == table]
    return found.reset_index(drop=True)


def sts(paper: str, table: str, *, backbone: str = "bert-base") -> pandas.DataFrame:
    """One table's STS scores, Spearman x100.

    Args:
        paper: A key of PAPERS.
        table: Printed number of the table.
        backbone: As the table has it.

    Returns:
        A model a row, the seven tasks and their printed average as columns.

    Raises:
        DataError: Where the table has no STS scores for the backbone.

    Examples:
        >>> from cselab.reporting import papers
        >>> float(papers.sts("jtcse", "I").average["SimCSE"])
        76.25
    """
    found = rows(paper, table)
    found = found[(found.backbone == backbone) & (found.metric == "spearman100")]
    found = found.assign(task=found.task.replace(OUR_NAMES))
    found = found[found.task.isin(COLUMNS)]
    if found.empty:
        hint = suggest(backbone, set(rows(paper, table).backbone))
        raise DataError(
            f"table {table} of {PAPERS[paper]} has no STS scores of {backbone!r}; {hint}"
        )
    names = found.model + found.variant.map(lambda variant: f" ({variant})" if variant else "")
    wide = found.assign(model=names).pivot_table(
        index="model", columns="task", values="value", sort=False
    )
    return wide.reindex(columns=[task for task in COLUMNS if task in wide.columns])


@functools.cache
def _all() -> pandas.DataFrame:
    path = embedded_dir() / "reported" / "reported.csv"
    found = pandas.read_csv(path, keep_default_na=False, dtype={"table": str})
    return found.astype({"value": float})
