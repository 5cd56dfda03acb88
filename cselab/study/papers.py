"""The numbers of the papers' tables, for comparison with ours.

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
SEED_SPREAD = 0.84
"""Standard deviation of the scores of fifty seeds of SimCSE, BERT-base, in points
(https://github.com/hppRC/simple-simcse)."""
DEPENDENCY = {"LLaMA": 0.17, "ChatGLM": 0.15, "BERT": 0.35}
"""Mean dependency before training, on the sentences of STS-B's test split (BeLLM Figure 2)."""
RARE_WORDS = 91.74
"""% of BeLLM's representative words in STS-B that are not frequent words (appendix A)."""
OUR_NAMES = {"STSB": "STSBenchmark", "SICKR": "SICK-R", "avg7": "average"}
"""Tasks by the papers' names, with the names that `evaluate_sts` gives them."""
COLUMNS = ("STS12", "STS13", "STS14", "STS15", "STS16", "STSBenchmark", "SICK-R", "average")


def rows(paper: str, table: str | None = None) -> pandas.DataFrame:
    """Every cell of a paper's tables (a key of PAPERS), or of the one with this printed number.

    Returns:
        Columns paper, table, backbone, model, variant, task, metric, value, source_note.

    Raises:
        DataError: With the nearest name, for an unknown paper or table.
    """
    if paper not in PAPERS:
        raise DataError(f"unknown paper {paper!r}; {suggest(paper, PAPERS)}")
    cells = _all()[_all().paper == paper]
    if table is not None:
        if table not in set(cells.table):
            raise DataError(
                f"{PAPERS[paper]} has no table {table!r}; {suggest(table, cells.table)}"
            )
        cells = cells[cells.table == table]
    return cells.reset_index(drop=True)


def sts(paper: str, table: str, *, backbone: str = "bert-base") -> pandas.DataFrame:
    """One table's STS scores, Spearman x100: a model a row, seven tasks and their printed average.

    Raises:
        DataError: As `rows`, and where the table has no STS scores for the backbone.

    Examples:
        >>> from cselab.study import papers
        >>> float(papers.sts("jtcse", "I").average["SimCSE"])
        76.25
    """
    cells = rows(paper, table)
    cells = cells[(cells.backbone == backbone) & (cells.metric == "spearman100")]
    cells = cells.assign(task=cells.task.replace(OUR_NAMES))
    cells = cells[cells.task.isin(COLUMNS)]
    if cells.empty:
        hint = suggest(backbone, set(rows(paper, table).backbone))
        source = f"table {table} of {PAPERS[paper]}"
        raise DataError(f"{source} has no STS scores of {backbone!r}; {hint}")
    wide = cells.assign(model=model_names(cells)).pivot_table(
        index="model", columns="task", values="value", sort=False
    )
    return wide.reindex(columns=[task for task in COLUMNS if task in wide.columns])


def model_names(cells: pandas.DataFrame) -> pandas.Series:
    """Names of cells' models, with the variant, if any, in brackets."""
    return cells.model + cells.variant.map(lambda variant: f" ({variant})" if variant else "")


@functools.cache
def _all() -> pandas.DataFrame:
    path = embedded_dir() / "reported" / "reported.csv"
    cells = pandas.read_csv(path, keep_default_na=False, dtype={"table": str})
    return cells.astype({"value": float})
