"""`cselab mteb`: an encoder's folder in, result files and tables out."""

import json
import re
import sys

import pytest

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


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["{empty}", "--task", "STS12"], "no encoder in .*: expected cselab.json"),
        (["{vision}", "--task", "STS12"], "is a 'vit' model; expected an encoder"),
        (["{tiny}", "--task", "STS17", "--languages", "sw"], "has the language 'sw'; they have"),
        (["{tiny}", "--task", "STS12", "--benchmark", "offline"], "a benchmark or tasks, not both"),
        (["{tiny}", "--data-dir", "/no/such"], "no folder /no/such"),
        (["{tiny}", "--data-dir", "/no/such", "--hub"], "the hub or a data folder, not both"),
        (["{tiny}", "--pooling", "avg"], "unknown pooling 'avg'"),
    ],
)
def test_bad_input_is_one_line_and_leaves_nothing(arguments, message, tmp_path, monkeypatch, capfd):
    """Prevents a traceback of mteb or transformers, and an empty folder of results."""
    places = {name: tmp_path / name for name in ("empty", "vision")} | {"tiny": TINY}
    places["empty"].mkdir()
    places["vision"].mkdir()
    (places["vision"] / "config.json").write_text('{"model_type": "vit"}')
    given = [argument.format(**places) for argument in arguments]
    outputs = tmp_path / "outputs"
    code, _, errors = cselab(monkeypatch, capfd, "mteb", *given, "--outputs", outputs)
    last = errors.strip().splitlines()[-1]
    assert code == 2
    assert last.startswith("cselab: ")
    assert re.search(message, last), last
    assert not outputs.exists()
