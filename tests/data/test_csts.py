"""C-STS: the authors' files as they are, and the synthetic counterpart."""

import csv
from collections import Counter

import numpy as np
import pytest

from cselab.data import csts, load_csts, load_sts
from cselab.data.synthetic.sets import CONDITIONS, conditional_pairs
from cselab.errors import DataError

ROWS = [
    ("An older man, with wine.", 'A group of "people".', "The people’s demeanor", "5"),
    ("An older man, with wine.", 'A group of "people".', "The number\nof bottles", "1.0"),
    ("A dog runs.", "A cat sleeps.", "The animal", "2"),
]
NAMES = {"train": "csts_train.csv", "dev": "csts_validation.csv", "test": "csts_test.csv"}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A data folder with three rows of each split, as the authors' csv writer quotes them."""
    monkeypatch.setattr(csts, "COUNTS", {"train": 3, "dev": 3, "test": 3})
    (tmp_path / "csts").mkdir()
    for split, name in NAMES.items():
        write(tmp_path / "csts" / name, [(*r[:3], "-1" if split == "test" else r[3]) for r in ROWS])
    return tmp_path


def write(path, rows, header=("sentence1", "sentence2", "condition", "label")):
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([header, *rows])


def test_the_authors_files_are_read_as_they_are(folder):
    """Prevents commas, quotes and line ends inside a text from shifting the cells of a row."""
    data = load_csts("dev", folder=folder)
    assert (data.task, data.split, len(data)) == ("C-STS", "dev", 3)
    assert [data.sentences1[0], data.sentences2[1], data.conditions[1]] == [
        "An older man, with wine.",
        'A group of "people".',
        "The number\nof bottles",
    ]
    assert data.scores.tolist() == [5, 1, 2]
    assert data.source.kind == "folder"
    assert load_csts("train", folder=folder).scores.tolist() == [5, 1, 2]
    assert np.isnan(load_csts("test", folder=folder).scores).all()  # whose ratings are -1


def test_rows_keep_their_conditions_and_the_fingerprint_reads_them(folder):
    """Prevents a subsample whose conditions belong to other rows."""
    data = load_csts("dev", folder=folder)
    some = data.rows(np.array([2, 0]))
    assert some.conditions == ["The animal", "The people’s demeanor"]
    assert some.sentences1 == ["A dog runs.", "An older man, with wine."]
    assert data.subsample(2).conditions == ["The people’s demeanor", "The animal"]
    write(folder / "csts" / NAMES["dev"], [(*ROWS[0][:2], "The mood", "5"), *ROWS[1:]])
    assert load_csts("dev", folder=folder).fingerprint != data.fingerprint


def test_bad_files_are_refused_with_their_row(folder):
    """Prevents a truncated download, and a rating off the scale, from scoring."""
    path, header = folder / "csts" / NAMES["dev"], ",".join(csts.COLUMNS)
    for row, message in [
        ("a,b,c,1", "has 1 rows, officially it has 3"),
        ("a,b,c,6", "line 2: label '6' is not a number from 1 to 5"),
        ("a,b,c,high", "line 2: label 'high' is not a number"),
    ]:
        path.write_text(f"{header}\n{row}\n")
        with pytest.raises(DataError, match=message):
            load_csts("dev", folder=folder)


def test_without_a_source_the_pairs_are_synthetic_and_say_so(tmp_path):
    """Prevents synthetic scores taken for C-STS, and splits that share sentences."""
    texts = []
    for split in ("dev", "test", "train"):
        data = load_csts(split, folder=tmp_path)
        assert (data.task, data.source.kind, len(data)) == ("Synthetic C-STS", "embedded", 600)
        texts.append({*data.sentences1, *data.sentences2})
    for data in (load_sts("Synthetic", split) for split in ("dev", "test")):
        texts.append({*data.sentences1, *data.sentences2})
    assert len(set.union(*texts)) == sum(map(len, texts))


def test_no_pair_of_sentences_is_trained_on_and_picks_the_checkpoint():
    """Prevents a checkpoint that is picked by pairs it has learned, under another condition."""
    data = load_csts("train")
    train, held_out = csts.training_rows(data)
    assert (len(train), len(held_out)) == (540, 60)
    pairs = [{*zip(part.sentences1, part.sentences2, strict=True)} for part in (train, held_out)]
    assert not pairs[0] & pairs[1]


@pytest.mark.parametrize("split", ["dev", "test"])
def test_neither_sentences_nor_condition_give_a_synthetic_rating_away(split):
    """Prevents a set on which a model scores without reading all three parts."""
    rows = conditional_pairs(split)
    for high, low in zip(rows[::2], rows[1::2], strict=True):
        assert (high.sentence1, high.sentence2) == (low.sentence1, low.sentence2)
        assert high.score - low.score >= 2
    assert Counter(row.slot for row in rows[::2]) == Counter(row.slot for row in rows[1::2])
    means = [np.mean([row.score for row in rows if row.slot == slot]) for slot in CONDITIONS]
    assert np.ptp(means) < 0.5
    assert all(CONDITIONS[row.slot] == row.condition for row in rows)
