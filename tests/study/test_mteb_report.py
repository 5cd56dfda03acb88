"""`cselab mteb`: an encoder's folder in, result files and tables out."""

import json
import sys

import pytest
from datasets import Dataset, DatasetDict
from mteb.abstasks import AbsTask

from cselab import cli
from cselab.data.sources import embedded_dir
from cselab.models import load

TINY = embedded_dir() / "backbones" / "tiny-bert"


def cselab(monkeypatch, capfd, *arguments):
    """Exit code, output and errors of a command line."""
    monkeypatch.setattr(sys, "argv", ["cselab", *map(str, arguments)])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    said = capfd.readouterr()
    return ended.value.code, said.out, said.err


def test_a_folder_is_evaluated_once_and_another_encoder_is_another_one(
    tmp_path, monkeypatch, capfd
):
    """Prevents an encoder from getting the scores of the one that had its name before."""
    monkeypatch.delenv("CSELAB_DATA", raising=False)
    folder = tmp_path / "mine" / "encoder"
    for turn, pooling in enumerate(["cls", "cls", "mean"]):
        load(TINY, pooling=pooling).save_pretrained(folder)
        tasks = ["--task", "SyntheticPairClassification", "--task", "STS12"]
        tasks += ["--task", "SyntheticReranking"] if turn == 1 else []
        code, out, _ = cselab(monkeypatch, capfd, "mteb", folder, *tasks, "--outputs", tmp_path)
        assert not code
        assert out.splitlines()[0].startswith("STS12 needs sts/sts12-test.tsv.gz of a data folder")
        assert ("(finished before)" in out) == (turn == 1)
    files = list(tmp_path.rglob("SyntheticPairClassification.json"))
    assert len(files) == 2
    found = {json.loads(path.read_text())["scores"]["test"][0]["main_score"] for path in files}
    assert len(found) == 2
    assert {path.parents[1].name for path in files} == {"cselab__mine"}
    assert len(list(tmp_path.rglob("scores.csv"))) == 2
    lengths = sorted(len(path.read_text().splitlines()) for path in tmp_path.rglob("scores.csv"))
    assert lengths == [2, 3]  # a later run adds to the table


@pytest.mark.real_data
def test_the_papers_table_stands_beside_ours_with_its_coverage(
    tmp_path, data_dir, monkeypatch, capfd
):
    """Prevents an average over ten of eleven pairs of languages, and a CSV without the papers."""
    where = ("--data-dir", data_dir, "--outputs", tmp_path, "--name", "tiny")
    code, out, _ = cselab(
        monkeypatch, capfd, "mteb", TINY, "--benchmark", "tncse-sts17", "--languages", "fr", *where
    )
    assert not code
    assert "STS17: cosine_spearman" in out
    assert "TNCSE, supplement, Table IV-1: 1 of 11 subsets, so no average of ours" in out
    (path,) = tmp_path.rglob("tncse-sts17.csv")
    header, *rows = path.read_text().splitlines()
    assert header.endswith(",tiny")
    assert len(rows) == 12
    assert sum(not row.endswith(",") for row in rows) == 1


def test_a_task_that_the_hub_does_not_give_stops_nothing(tmp_path, monkeypatch, capfd):
    """Prevents --hub from reading a folder's pairs, and one data set that does not load from
    ending a run of fifty."""

    def load_data(task, **_):
        if task.metadata.name == "SciFact":
            raise ConnectionError("offline")
        rows = {"sentence1": ["a dog", "a cat", "rain"], "sentence2": ["a dog", "a man", "it"]}
        task.dataset = DatasetDict(test=Dataset.from_dict({**rows, "score": [5.0, 2.0, 1.0]}))
        task.data_loaded = True

    monkeypatch.setattr(AbsTask, "load_data", load_data)
    words = ["mteb", TINY, "--hub", "--task", "SciFact", "--task", "STS16", "--outputs", tmp_path]
    code, out, _ = cselab(monkeypatch, capfd, *words)
    assert not code
    left_out, scored = out.splitlines()[:2]
    assert left_out.startswith("SciFact: left out: mteb/scifact does not load (Connection")
    assert scored.startswith("STS16: cosine_spearman ")
    (path,) = tmp_path.rglob("STS16.json")
    assert path.parent.name.endswith("-hub")
    assert len(json.loads(path.read_text())["dataset_revision"]) == 40  # mteb's own, not ours
