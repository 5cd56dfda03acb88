"""Reports: the right means and differences in every form, no table of what is not comparable."""

import base64
import gzip
import html
import re
import sqlite3
from dataclasses import replace

import numpy
import pandas
import pytest
from example_result import RESULT
from markdown_it import MarkdownIt

from cselab.errors import DataError
from cselab.evaluation.methods import holm
from cselab.experiments.store import Store
from cselab.study.sweep_report import write_report
from cselab.study.tables import read_tables

SCORES = {
    "towers": [60.0, 61.0, 62.0, 63.0],
    "jtcse": [61.0, 62.5, 63.0, 64.5],
    "<b>": [60.0, 61.1, 61.9, 63.0],
}
STS7 = ("STS12", "STS13", "STS14", "STS15", "STS16", "STSBenchmark", "SICK-R")


def add(store, key, value=60.0, *, n=70, **changes):
    """Add a run with one test average, or with the `rows` given."""
    changes.setdefault("rows", [("test", "average", value, n)])
    store.add(replace(RESULT, key=key, **changes))


@pytest.fixture
def store(tmp_path):
    store = Store(tmp_path / "s.sqlite")
    for label, values in SCORES.items():
        method = label if label != "<b>" else "simcse"
        for seed, value in enumerate(values, 1):
            rows = [("test", task, value + i - 3, 10) for i, task in enumerate(STS7)]
            rows += [("test", "average", value, 70), ("dev", "STSBenchmark", value + 5, 5)]
            rows += [("change", "negation", 30.0 + seed, 4), ("energy", "[CLS]", 0.3, 5)]
            rows += [("uniformity", "STSBenchmark", -2.0, 5)]
            add(store, f"{label}{seed}", label=label, method=method, seed=seed, rows=rows)
    add(store, "bad", label="simcse", seed=9, error="the loss is not finite", rows=[])
    add(store, "was bad", label="jtcse", seed=1, error="no such term", rows=[])
    return store


@pytest.fixture
def report(tmp_path):
    """Write a store's report; return its page, Markdown and table of scores."""

    def written(store, **options):
        page = write_report(store.path, tmp_path / "r", **options).read_text()
        table = pandas.read_csv(tmp_path / "r" / "tables" / "scores.csv", index_col=0)
        return page, (tmp_path / "r" / "report.md").read_text(), table

    return written


def test_tables_in_three_forms(store, report, tmp_path):
    """Prevents an unpaired difference, a paper's figure at the wrong row, labels that become tags,
    and failures that vanish."""
    page, text, table = report(store, against="towers")
    row = table.loc["jtcse"]
    assert row.average == pytest.approx(62.75)
    assert row.difference == pytest.approx((1 + 1.5 + 1 + 1.5) / 4)
    half = 3.182446 * 0.288675 / 2  # t of 3 degrees of freedom; sd of 1, 1.5, 1, 1.5
    assert row.high - row.low == pytest.approx(2 * half, rel=1e-3)
    assert (row.p, row.p_holm) == (0.0032, 0.0065)  # t = 8.66, 3 degrees of freedom
    assert row["STS12"] == pytest.approx(59.75)
    papers = {"towers": float("nan"), "jtcse": 79.70, "<b>": 76.25}
    assert table.paper.to_dict() == pytest.approx(papers, nan_ok=True)
    assert "| jtcse | 59.75 |" in text
    assert "+1.25 | [+0.79, +1.71] | 0.003 | 0.006" in text
    assert "FAILED: simcse, seed 9: the loss is not finite" in text
    assert "FAILED: jtcse" not in text  # done again since
    assert "&lt;b&gt;" in page
    assert "<th><b></th>" not in page
    assert not re.findall(r"<(?:script|link|img)[^>]+(?:src|href)\s*=\s*[\"']?https?:", page)
    assert pandas.read_csv(tmp_path / "r" / "tables" / "rows.csv").key.nunique() == 12


@pytest.mark.parametrize(
    "label", ["a|b", "*a* `b`", "<b>x</b>", "cr\r\nhere", "[a](b) _c_ \\d &lt;", "# 9", "x" * 99]
)
def test_a_label_is_shown_as_it_is_written(label, report, tmp_path):
    """Prevents a label that adds a column to a table, is a tag, a link or emphasis, is cut off, or
    ends the row."""
    store = Store(tmp_path / "s.sqlite")
    for seed, value in enumerate(SCORES["towers"], 1):
        for name in (label, "other"):
            add(store, f"{name == label}{seed}", value, label=name, seed=seed)
    add(store, "bad", label=label, seed=9, error=label, rows=[])
    page, text, _ = report(store, against=label)
    shown = " ".join(label.split())
    text = MarkdownIt().enable("table").render(text)
    assert f"difference: from {html.escape(shown)}, seed by seed" in text
    assert f"<td>{html.escape(shown)}</td>\n<td>61.50</td>" in text
    assert f"FAILED: {html.escape(shown)}, seed 9: {html.escape(shown)}</li>" in text
    assert f"<th>{html.escape(shown, quote=False)}</th>" in page
    for name in ("scores", "rows"):
        table = pandas.read_csv(tmp_path / "r" / "tables" / f"{name}.csv")
        assert set(table[table.columns[0]]) == {shown, "other"}


def test_a_damaged_field_of_a_store_costs_no_report(store, report):
    """Prevents a traceback where a run's settings or environment are no JSON."""
    with sqlite3.connect(store.path) as db:
        db.execute("UPDATE runs SET settings = '[', environment = '{' WHERE key = 'jtcse1'")
    assert "The environment of the run jtcse1 is damaged in the store." in report(store)[1]


def test_a_row_that_equals_the_baseline_has_no_number_of_seeds(store, report):
    """Prevents a number of seeds, billions of them, beside a difference that none would show."""
    for seed, value in enumerate(SCORES["towers"], 1):
        add(store, f"same{seed}", value, label="same", method="towers", seed=seed)
    row = re.search(r"\| same \|.*", report(store, against="towers")[1])[0]
    assert "| +0.00 | [+0.00, +0.00] | 1.000 | 1.000 | no number |" in row


def test_claims_and_energy_are_in_the_report_and_go_with_it(store, report, tmp_path):
    """Prevents a verdict on other rows than the claim names, and old claims beside new tables."""
    claim = '[[claims]]\nclaim = "{} beats {}"\nsource = "Table 1"\nbetter = "{}"\nthan = "{}"\n'
    claims = claim.format("J", "T", "jtcse", "towers") + "gap = 0.5\n"
    (tmp_path / "c.toml").write_text(claims + claim.format("T", "X", "towers", "x"))
    page, text, _ = report(store, claims=tmp_path / "c.toml")
    assert "| J beats T | +0.50 | +1.25 | [+0.79, +1.71] | better | 0.003 | 0.003 | 4 |" in text
    assert "| jtcse − towers | Table 1 |" in text
    assert re.search(r"\| T beats X .* \| no runs \|  \|  \| 0 \|  \| .* \| Table 1 \|", text)
    packed = re.search(r"<script id='payload' type='text/plain'>([^<]*)</script>", page)[1]
    assert "3 labels, Spearman" in gzip.decompress(base64.b64decode(packed)).decode()
    assert (tmp_path / "r" / "tables" / "claims.csv").exists()
    report(store)
    assert not (tmp_path / "r" / "tables" / "claims.csv").exists()


def test_a_choice_by_the_dev_split_alone(report, tmp_path):
    """Prevents a sweep that measured no test from having no table."""
    store = Store(tmp_path / "s.sqlite")
    for label, value in (("rate 1", 60.0), ("rate 2", 61.0)):
        add(store, label, label=label, rows=[("dev", "World", value, 5)])
    _, text, table = report(store)
    assert table.average.to_dict() == {"rate 1": 60.0, "rate 2": 61.0}
    assert "rate 2: fewer than 3 seeds, so no difference" in text


def test_rows_may_train_on_other_text_but_not_have_other_tests(report, tmp_path):
    """Prevents a study of the training text that no table can show, and a table over two test
    sets."""
    store = Store(tmp_path / "s.sqlite")
    data = RESULT.settings["data"]
    add(store, "k1")
    add(store, "k2", label="more", data="e", settings={"data": {**data, "sentences": 9}})
    report(store)
    add(store, "k3", label="less", data="f", settings={"data": {**data, "sentences": 8}}, n=69)
    with pytest.raises(DataError, match="3 kinds of data"):
        report(store)


def test_labels_are_chosen_and_the_baseline_is_kept(store, report):
    """Prevents a chosen row without what it is compared with, and a mistyped one that is lost."""
    assert list(report(store, against="towers", only=["j*"])[2].index) == ["towers", "jtcse"]
    for wrong in ({"against": "jtsce"}, {"against": "towers", "only": ["towers", "jtsce"]}):
        with pytest.raises(DataError, match="no runs of 'jtsce'.*did you mean 'jtcse'"):
            report(store, **wrong)


def test_what_notebooks_recorded(report, tmp_path):
    """Prevents an empty table and an empty figure where a grid had notebooks only, and a difference
    from a row that the table does not have."""
    store = Store(tmp_path / "s.sqlite")
    for seed in (1, 2, 3):
        rows = [("TNCSE", "World", 60.0 + seed, 5), ("JTCSE", "World", 62.0 + seed, 5)]
        add(store, f"n{seed}", label="03", method="03_jtcse", seed=seed, rows=rows)
    page, _, table = report(store)
    assert table.average.to_dict() == {"03: TNCSE": 62, "03: JTCSE": 64}
    assert "Every seed" not in page
    assert "difference: from 03: TNCSE" in page
    add(store, "m", label="jtcse")
    text = report(store, against="jtcse")[1]
    assert "Without test scores, only in tables/rows.csv: 03." in text


def test_what_cannot_be_compared_is_refused(store, report, tmp_path):
    """Prevents a mean over two texts, one over a label's old and new settings, and scores that
    vanish without a word because a later sweep measured others."""
    add(store, "again", 70.0, label="jtcse", seed=1, finished="2026-02-01")
    text = report(store, against="towers")[1]
    assert "1 older runs of the same label and seed are left out" in text
    assert "newer runs do not have (change, dev, energy, uniformity)" in text
    add(store, "other", 70.0, label="jtcse", seed=5, data="other")
    with pytest.raises(DataError, match="2 kinds of data"):
        report(store, against="towers")
    with pytest.raises(DataError, match="no store"):
        write_report(tmp_path / "none.sqlite", tmp_path / "r")
    with pytest.raises(DataError, match="no finished run"):
        report(Store(tmp_path / "empty.sqlite"))


def test_runs_made_again_after_a_change_of_the_data_have_a_report(tmp_path):
    """Prevents a store of which no report can be made, since its older runs read other data."""
    store = Store(tmp_path / "s.sqlite")
    for data, value in (("before", 60.0), ("after", 70.0)):
        for label in ("simcse", "jtcse"):
            add(store, f"{label}, {data}", value, label=label, data=data)
    scores = read_tables(store.path).numbers["scores"]
    assert scores.average.to_dict() == {"simcse": 70, "jtcse": 70}


def test_holm():
    """Against the definition: sorted p times what is left, never falling, at most 1."""
    assert list(holm(numpy.array([0.01, 0.04, 0.03, 0.9]))) == pytest.approx(
        [0.04, 0.09, 0.09, 0.9]
    )
    assert list(holm(numpy.array([0.6, 0.5]))) == [1.0, 1.0]
