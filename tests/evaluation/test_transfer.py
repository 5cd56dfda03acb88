"""Transfer tasks: the folds, the features, the files."""

import gzip

import numpy as np
import pytest

from cselab.data import transfer as data
from cselab.data.transfer import LabelledText, load_transfer
from cselab.errors import DataError
from cselab.evaluation import evaluate_transfer
from cselab.evaluation.transfer import features


def write(path, header, rows):
    path.parent.mkdir(exist_ok=True)
    with gzip.open(path, "wt") as file:
        file.writelines("\t".join(row) + "\n" for row in [header, *rows])


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Small files of the three shapes; the label is in the text, for an encoder that can read
    it."""
    labels = list(enumerate(np.random.default_rng(0).choice(["1", "0"], 120)))
    rows = [(f"text {i} is {label}", label) for i, label in labels]
    pairs = [(f"{i} x", f"{i} {'x' if label == '1' else 'y'}", label) for i, label in labels]
    files = {
        "mr": rows,
        "sst2-train": rows[:60],
        "sst2-dev": rows[60:90],
        "sst2-test": rows[90:],
        "mrpc-train": pairs[:80],
        "mrpc-test": pairs[80:],
    }
    for name, some in files.items():
        header = ("text", "label") if len(some[0]) == 2 else ("sentence1", "sentence2", "label")
        write(tmp_path / "transfer" / f"{name}.tsv.gz", header, some)
    counts = {"MR": {"": 120}, "SST2": {"train": 60, "dev": 30, "test": 30}}
    monkeypatch.setattr(data, "COUNTS", {**counts, "MRPC": {"train": 80, "test": 40}})
    return tmp_path


def reads_the_end(sentences):
    noise = np.random.default_rng(len(sentences)).normal(size=(len(sentences), 4))
    return np.hstack([noise, [[s.endswith(("1", "x")) * 1.0] for s in sentences]])


def test_an_encoder_that_knows_the_label_scores_all_of_it(folder):
    """Prevents labels that slip against their texts, in any of the three protocols."""
    tasks = ("MR", "SST2", "MRPC")
    assert evaluate_transfer(reads_the_end, tasks, folder=folder) == dict.fromkeys(tasks, 100)


def test_an_encoder_that_knows_nothing_scores_chance(folder):
    """Prevents a test row from being trained on."""
    noise = lambda sentences: reads_the_end(sentences)[:, :4]  # noqa: E731
    scores = evaluate_transfer(noise, ("MR", "SST2"), folder=folder, limit=50)
    assert all(30 < score < 70 for score in scores.values())


def test_features_of_a_pair():
    """By hand; prevents vectors of the wrong sentence of a pair."""
    part = {"test": LabelledText((["a", "b"], ["b", "b"]), np.array(["1", "0"]))}
    vectors = {"a": [1.0, 2.0], "b": [3.0, -1.0]}
    found = features(lambda sentences: [vectors[s] for s in sentences], part)["test"]
    assert found.tolist() == [[2, 3, 3, -2], [0, 0, 9, 1]]


def test_another_number_of_rows_is_refused(folder):
    """Prevents an accuracy on a part of the rows."""
    write(folder / "transfer" / "mr.tsv.gz", ("text", "label"), [("a", "1")] * 119)
    with pytest.raises(DataError, match="119 rows"):
        load_transfer("MR", folder)


def test_the_real_files_have_their_official_rows(data_dir):
    """Prevents rows that the reader loses."""
    for task, parts in data.COUNTS.items():
        found = load_transfer(task, data_dir)
        assert {name: len(part.labels) for name, part in found.items()} == parts
    assert len(set(load_transfer("TREC", data_dir)["train"].labels)) == 6
