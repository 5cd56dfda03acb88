"""Benchmarks of the papers' tables, and results beside them."""

import math
from types import SimpleNamespace

import pytest

from cselab.errors import SettingsError
from cselab.study import papers
from cselab.study.mteb_report import benchmark_tasks
from cselab.study.mteb_tables import TABLES, beside_table, retrieval_metrics, scores, tables_with


def result(task, scores_by_subset, metric="main_score", split="test"):
    """Stands for mteb's TaskResult."""
    rows = [
        {"hf_subset": subset, "main_score": value, metric: value}
        for subset, value in scores_by_subset.items()
    ]
    return SimpleNamespace(task_name=task, scores={split: rows}, dataset_revision="1")


KINDS = {
    "STS": {"jtcse-sts": 3, "jtcse-sts22": 18, "tncse-sts17": 11, "tncse-sts22": 18},
    "Classification": {"jtcse-classification": 45, "tncse-classification": 30},
    "Reranking": {"jtcse-reranking": 14, "tncse-reranking": 9},
    "Retrieval": {"tncse-retrieval": 30},
    "BitextMining": {"jtcse-bitext": 15},
}


@pytest.mark.parametrize(
    ("name", "count", "kind"),
    [(name, count, kind) for kind, counts in KINDS.items() for name, count in counts.items()],
)
def test_every_printed_name_is_a_task_of_mteb_and_of_the_right_kind(name, count, kind):
    """Prevents a shortened name that is another task's, or none's, and a row that is left out."""
    from cselab.evaluation.mteb_tasks import find_tasks

    names = TABLES[name].tasks
    assert len(names) == count
    for task in names.values():
        name, _, subset = task.partition("/")
        (found,) = find_tasks([name])
        assert found.metadata.type == kind
        assert not subset or subset in found.metadata.hf_subsets


def test_the_printed_averages_are_those_of_the_listed_tasks():
    """Prevents a table whose average is over other tasks than those that a run would average."""
    checked, misprints = 0, []
    for table in TABLES.values():
        frame = beside_table(next(n for n in TABLES if TABLES[n] is table), []).frame
        for model, column in frame.drop(columns="here").items():
            cells = column.drop(table.average)
            if cells.notna().all() and not math.isnan(column[table.average]):
                checked += 1
                if abs(cells.mean() - column[table.average]) > 0.02:
                    misprints.append((table.average, model))
    assert misprints == [("STS22/avg18", "InfoCSE"), ("STS22/avg18", "TNCSE D")]  # ERRATA.md
    assert checked > 90


def sts17(*left_out):
    """Results on the subsets of TNCSE's Table IV-1."""
    names = [name.split("/")[1] for name in TABLES["tncse-sts17"].tasks.values()]
    return [result("STS17", {name: 0.5 for name in names if name not in left_out})]


def test_an_average_of_ours_needs_every_task_and_every_subset():
    """Prevents a mean over the tasks that happened to run from standing beside the paper's, also
    in TNCSE's Table 2, and our folder called SimCSE from overwriting the printed SimCSE."""
    whole = beside_table("tncse-sts17", sts17(), "SimCSE")
    assert whole.frame.loc["STS17/avg11", "SimCSE (here)"] == pytest.approx(50)
    assert whole.frame.loc["STS17/avg11", "SimCSE"] == 34.22
    assert whole.coverage == "11 of 11 subsets"
    part = beside_table("tncse-sts17", sts17("ko-ko"), "ours")
    assert part.frame.loc[["STS17/avg11", "STS17/ko-ko"], "ours"].isna().all()
    assert part.coverage == "10 of 11 subsets, so no average of ours"
    two = beside_table("tncse-zero-shot", sts17(), "SimCSE")
    assert two.coverage == "1 of 5 averages"
    assert two.frame["SimCSE (here)"].dropna().to_dict() == {"STS17/avg11": pytest.approx(50)}
    assert set(two.frame.index) == set(papers.rows("tncse", "2").task)
    assert two.frame.loc["STS17/avg11", "SimCSE"] == 34.22


def test_a_task_without_all_its_languages_is_no_score_of_the_task():
    """Prevents the English part of MassiveIntent from standing for its 51 languages."""
    part = result("MassiveIntentClassification", {"en": 0.7})
    assert beside_table("jtcse-classification", [part]).coverage.startswith("0 of 45")
    one = result("TweetEmotionClassification", {"default": 0.3}, split="train")
    beside = beside_table("jtcse-classification", [part, one])
    assert beside.coverage.startswith("1 of 45 tasks, so no average")
    assert beside.frame.loc["TweetEmotion", "here"] == pytest.approx(30)


def test_the_retrieval_tables_read_the_papers_metrics():
    """Prevents nDCG, mteb's main score, beside the MAP that TNCSE prints."""
    row = {"hf_subset": "default", "main_score": 0.9, "map_at_10": 0.2}
    row |= {f"{kind}_at_{k}": 0.1 for kind in ("mrr", "ndcg", "precision") for k in (1, 5, 10)}
    row |= {f"recall_at_{k}": 0.4 for k in (1, 5, 10)} | {"map_at_1": 0.1, "map_at_5": 0.1}
    found = SimpleNamespace(task_name="NFCorpus", scores={"test": [row]}, dataset_revision="1")
    assert beside_table("tncse-retrieval", [found]).frame.loc["NFCorpus", "here"] == 20
    assert retrieval_metrics([found]).loc["recall@5", "NFCorpus"] == pytest.approx(40)
    seven = beside_table("jtcse-retrieval", [found])
    assert seven.frame.loc["map@10", "here, mean of 1"] == pytest.approx(20)
    assert seven.frame.loc["map@10", "JTCSE"] == 12.75
    assert len(seven.frame) == 15


def test_only_tables_with_a_result_are_shown_and_all_scores_are_listed():
    """Prevents ten empty tables after a run of one task."""
    found = [result("STS17", {"en-en": 0.8, "ar-ar": 0.2})]
    assert tables_with(found) == ["jtcse-sts", "tncse-sts17"]
    assert scores(found)["here"].tolist() == [80, 20]
    assert tables_with([]) == []


def test_benchmarks_of_mteb_and_an_unknown_one():
    """Prevents a benchmark of the papers alone, and a list of two hundred names as a hint."""
    assert "Banking77Classification" in benchmark_tasks("MTEB(eng, v2)")
    assert benchmark_tasks("offline")[:2] == ["STS12", "STS13"]
    with pytest.raises(SettingsError, match="did you mean 'jtcse-reranking'") as error:
        benchmark_tasks("jtcse-rerank")
    assert len(str(error.value)) < 400
    with pytest.raises(SettingsError, match="no table 'jtcse-bitexts'; did you mean"):
        beside_table("jtcse-bitexts", [])
