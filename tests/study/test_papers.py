"""The papers' tables: readable by name, and every misprint on the errata page recomputed."""

import pytest

from cselab.errors import DataError
from cselab.study import papers

CELLS = ["STS12", "STS13", "STS14", "STS15", "STS16", "STSB", "SICKR"]
KNOWN = {
    ("bellm", "1", "", "SBERT"): (74.89, 74.86),
    ("imsimcse", "3", "sbert-base", "SBERT"): (74.89, 74.86),
    ("jtcse", "I", "bert-base", "SBERT-base"): (74.89, 74.86),
    ("jtcse", "I", "roberta-base", "JTCSE"): (79.94, 79.85),
    ("tncse", "1", "bert-base", "TNCSE D"): (79.77, 78.34),
}


def cell(paper, table, model, task, backbone="bert-base"):
    found = papers.rows(paper, table)
    found = found[(found.model == model) & (found.task == task) & (found.backbone == backbone)]
    assert len(found) == 1, found
    return found.value.item()


def test_the_averages_that_do_not_fit_are_those_of_the_errata_page():
    """Prevents a slip of our own in the table, and a misprint that nobody lists."""
    wrong, seen = {}, 0
    for paper in papers.PAPERS:
        for (table, backbone, model, _, _), group in papers.rows(paper).groupby(
            ["table", "backbone", "model", "variant", "metric"]
        ):
            values = dict(zip(group.task, group.value, strict=True))
            if {"avg7", *CELLS} <= values.keys():
                seen += 1
                mean = sum(values[task] for task in CELLS) / 7
                if abs(mean - values["avg7"]) > 0.0201:
                    wrong[paper, table, backbone, model] = (values["avg7"], round(mean, 2))
    assert seen > 140
    assert wrong == KNOWN


def test_the_errata_page_is_right():
    """Prevents a correction that does not fit, and a disagreement of cells that is ours."""
    row = [cell("tncse", "1", "TNCSE D", task) for task in CELLS]
    row[3] = cell("jtcse", "I", "TNCSE D", "STS15")
    assert sum(row) / 7 == pytest.approx(79.77, abs=0.006)
    row = [cell("jtcse", "I", "JTCSE", task, "roberta-base") for task in CELLS]
    row[1] = 84.79  # as the repository has it
    assert sum(row) / 7 == pytest.approx(79.93, abs=0.006)
    assert cell("jtcse", "I", "DiffCSE", "STS17") == cell("jtcse", "I", "ESimCSE", "STSBM") == 80.15
    assert cell("jtcse", "I", "RankCSE", "STSBM") == cell("jtcse", "I", "RankCSE", "STS22") == 62.46
    assert cell("jtcse", "I", "TNCSE", "STS17") == 85.78
    assert cell("jtcse", "I", "RankCSE", "avg7") == 80.10


def test_a_table_by_our_task_names_and_unknown_ones():
    """Prevents a table whose columns `evaluate_sts` does not know."""
    table = papers.sts("jtcse", "I")
    assert list(table.columns)[-3:] == ["STSBenchmark", "SICK-R", "average"]
    assert table.notna().all().all()
    with pytest.raises(DataError, match="unknown paper 'jtcs'; did you mean 'jtcse'"):
        papers.rows("jtcs")
    with pytest.raises(DataError, match="JTCSE has no table 'XX'"):
        papers.rows("jtcse", "XX")
    with pytest.raises(DataError, match="STS scores of 'bert-bass'; did you mean 'bert-base'"):
        papers.sts("jtcse", "I", backbone="bert-bass")
