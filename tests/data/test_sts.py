"""STS loading: official counts, no quoting, and every malformed file as one clear line."""

import gzip
import sys
from types import SimpleNamespace

import numpy as np
import pytest

from cselab.data import STS7, load_sts, sts
from cselab.data.sts import MULTILINGUAL, YEARLY
from cselab.errors import DataError

HEADER = "sentence1\tsentence2\tscore\tsubset\n"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """`folder(text)` writes sts/sts12-test.tsv.gz, of which three pairs are official here."""
    monkeypatch.delenv("CSELAB_DATA", raising=False)
    monkeypatch.setattr(
        "cselab.data.sts._COUNTS", {"STS12": {"test": 3}, "SICK-R": {"test": 3, "all": 5}}
    )

    def write(text: str | bytes, name: str = "sts/sts12-test.tsv.gz"):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(gzip.compress(text.encode() if isinstance(text, str) else text))
        return tmp_path

    return write


GOOD = HEADER + 'a "lone quote\tb\t5.0\tx\nc\td\t0\tx\n"e"\tf "" g\t2.5\ty\n'


def test_quote_marks_are_part_of_the_text(folder):
    """Prevents a quoting reader, which swallows lines from one lone quote to the next."""
    data = load_sts("STS12", folder=folder(GOOD))
    assert data.sentences1 == ['a "lone quote', "c", '"e"']
    assert data.sentences2 == ["b", "d", 'f "" g']
    assert data.scores.tolist() == [5.0, 0.0, 2.5]
    assert data.scores.dtype == np.float64
    assert data.subsets == ["x", "x", "y"]
    assert data.source.kind == "folder"
    assert len(data) == 3


def test_columns_are_found_by_name(folder):
    """Prevents reading the gold score of files whose columns stand in another order as text."""
    rows = [line.split("\t") for line in GOOD.splitlines()]
    turned = "\n".join("\t".join([row[2], "extra", row[1], row[0]]) for row in rows) + "\n"
    turned = turned.replace("score\textra\tsentence2\tsentence1", "score\tid\tsentence2\tsentence1")
    data = load_sts("STS12", folder=folder(turned))
    assert data.sentences1 == ['a "lone quote', "c", '"e"']
    assert data.scores.tolist() == [5.0, 0.0, 2.5]
    assert data.subsets is None


def test_the_fingerprint_follows_texts_and_ratings_alone(folder):
    """Prevents a training that is reused though its dev split was another, or lost after a move."""
    before = load_sts("STS12", folder=folder(GOOD)).fingerprint
    assert load_sts("STS12", folder=folder(GOOD.replace("\tx", "\tz"))).fingerprint == before
    assert load_sts("STS12", folder=folder(GOOD.replace("2.5", "2.6"))).fingerprint != before
    assert load_sts("STS12", folder=folder(GOOD.replace("c\td", "c d\t"))).fingerprint != before


PAIRS = "sentence1\tsentence2\tscore\nA dog, running.\tB\t0\nC\tD\t2.5\nE\tF\t5\n"
CSV = 'sentence1,sentence2,score\n"A dog, running.",B,0\nC,D,2.5\nE,F,5\n'


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.TSV", PAIRS),
        ("a.tsv.GZ", gzip.compress(PAIRS.encode(), mtime=0)),
        ("a.txt", PAIRS),
        ("pairs", PAIRS),
        ("a,b.tsv", PAIRS),
        ("blank.tsv", PAIRS + "\n \n"),
        ("windows.tsv", (PAIRS + "\n").replace("\n", "\r\n")),
        ("packed.tsv", gzip.compress(PAIRS.encode(), mtime=0)),
        ("a.csv", CSV),
        ("a.CSV.gz", gzip.compress((CSV + ",,\n").encode(), mtime=0)),
        ("excel.csv", CSV.replace(",", ";").replace("dog;", "dog,").encode("utf-8-sig")),
    ],
)
def test_pairs_are_read_in_every_clear_form(tmp_path, monkeypatch, name, content):
    """Prevents "unknown task" for a file, and a traceback for a blank line or a `Path`."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / name).write_bytes(content.encode() if isinstance(content, str) else content)
    for given in (name, tmp_path / name):
        data = load_sts(given)
        assert data.sentences1 == ["A dog, running.", "C", "E"]
        assert data.scores.tolist() == [0, 2.5, 5]


def test_a_scale_is_known_by_its_maximum(tmp_path):
    """Prevents pairs of the same meaning that are above 4 only, in a file rated from 0 to 1."""
    path = tmp_path / "a.tsv"
    for top in (5, 1):
        rows = [f"a\tb\t{part * top}\n" for part in (0, 0.8, 0.84, 1)]
        path.write_text("sentence1\tsentence2\tscore\n" + "".join(rows))
        assert load_sts(path).same_meaning.tolist() == [False, False, True, True]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"task": "SICK-R", "split": "trial"}, "SICK-R has no split 'trial'; .*valid: all, test"),
        ({"task": "Synthetic", "split": "train"}, "no split 'train'; valid: dev, test"),
        ({"task": "SICK-R", "text": "senteval"}, "SICK-R has no 'senteval' text; use 'raw', or"),
        ({"task": "STS12", "text": "tokenised"}, "STS12 has no 'tokenised' text"),
    ],
)
def test_a_task_split_or_text_that_is_not_there_is_refused(folder, arguments, message):
    """Prevents a score under the name of another test."""
    with pytest.raises(DataError, match=message):
        load_sts(**arguments)


def test_a_users_own_pairs_are_a_task_by_their_path(tmp_path):
    """Prevents a user's file refused for its size, and a dev set whose correlation is NaN."""
    path = tmp_path / "my-pairs.tsv"
    path.write_text(GOOD, encoding="utf-8-sig")  # as Excel saves it
    data = load_sts(str(path))
    assert (data.task, len(data), data.subsets) == ("my-pairs", 3, ["x", "x", "y"])
    one_rating = HEADER + "".join(f"a{i}\tb\t3.0\tx\n" for i in range(4))
    for text, message in [
        (GOOD[: GOOD.index("c\t")], "has 1 pairs; a correlation needs at least 3"),
        (one_rating, "all pairs have the score 3; a correlation"),
    ]:
        path.write_text(text)
        with pytest.raises(DataError, match=message):
            load_sts(str(path))


@pytest.fixture
def hub(monkeypatch):
    """What is asked of a stand-in for the hub, which has three pairs of everything."""
    calls = []

    def three_pairs(name, split):
        calls.append((name, split))
        return sts._Columns(["a", "c", "e"], ["b", "d", "f"], [5.0, 0.0, 2.5], ["", "", ""])

    monkeypatch.setattr(sts, "_fetch", three_pairs)
    pairs = [("a", "b", 5.0, ""), ("c", "d", 0.0, ""), ("e", "f", 2.5, "")]
    asked = lambda split: calls.append(("senteval.tar", split)) or pairs  # noqa: E731
    monkeypatch.setattr(sts.senteval_archive, "sick_pairs", asked)
    return calls


def test_the_hub_is_asked_only_for_what_the_folder_lacks(folder, hub, tmp_path):
    """Prevents downloads of what is there, and scores on a copy that has changed."""
    data = load_sts("STS12", folder=tmp_path, hub=True)
    assert (str(data.source), data.subsets) == ("hub (mteb/sts12-sts)", None)
    assert data.sentences1 == ["a", "c", "e"]
    assert hub == [("mteb/sts12-sts", "test")]
    assert load_sts("STS12", folder=folder(GOOD), hub=True).source.kind == "folder"
    assert len(hub) == 1
    with pytest.raises(DataError, match="mteb/sickr-sts has 3 pairs, officially it has 5"):
        load_sts("SICK-R", "all", hub=True)


def test_the_hub_gives_each_split_under_its_own_name(hub, monkeypatch):
    """Prevents scores on mteb's 9,927 pairs of SICK-R under the name of the papers' 4,927."""
    counts = {"STSBenchmark": {"dev": 3}, "SICK-R": {"all": 3, "test": 3}}
    monkeypatch.setattr(sts, "_COUNTS", sts._COUNTS | counts)
    monkeypatch.delenv("CSELAB_DATA", raising=False)
    load_sts("STSBenchmark", "dev", hub=True)
    load_sts("SICK-R", "all", hub=True)
    data = load_sts("SICK-R", "test", hub=True)
    splits = [("mteb/stsbenchmark-sts", "validation"), ("mteb/sickr-sts", "test")]
    assert hub == [*splits, ("senteval.tar", "test")]
    assert str(data.source) == "hub (princeton-nlp/datasets-for-simcse/senteval.tar)"
    with pytest.raises(DataError, match=r"no source for STS17-en-de test .the hub has no such"):
        load_sts("STS17-en-de", hub=True)
    assert len(hub) == 3


def test_the_phenomena_of_synthetic_pairs_are_their_subsets(monkeypatch):
    """Prevents phenomena that are scored under each other's names."""
    pair = ("a", "b", 3, "negation")
    synthetic = SimpleNamespace(sts_pairs=lambda split: [pair] if split == "dev" else [pair, pair])
    monkeypatch.setitem(sys.modules, "cselab.data.synthetic", synthetic)
    data = load_sts("Synthetic", "dev")
    assert (data.subsets, data.scores.tolist()) == (["negation"], [3.0])
    assert data.source.kind == "embedded"
    assert len(load_sts("Synthetic", "test")) == 2


SUBSETS = {
    "STS12": {"MSRpar": 750, "MSRvid": 750, "SMTeuroparl": 459, "OnWN": 750, "SMTnews": 399},
    "STS13": {"FNWN": 189, "headlines": 750, "OnWN": 561},
    "STS16": {"answer-answer": 254, "headlines": 249, "plagiarism": 230}
    | {"postediting": 244, "question-question": 209},
}


@pytest.mark.real_data
@pytest.mark.parametrize("text", ["raw", "senteval"])
def test_the_seven_tasks_have_their_official_pairs(data_dir, text):
    """Prevents a pair or a subset that the reader loses."""
    for task in (*STS7, *MULTILINGUAL):  # numbers of pairs are checked where they are loaded
        data = load_sts(task, folder=data_dir, text=text if task in YEARLY else "raw")
        assert data.scores.min() >= 0
        if task in SUBSETS:
            assert {name: data.subsets.count(name) for name in data.subsets} == SUBSETS[task]


def test_captions_are_the_official_parts(data_dir):
    """Prevents a subset missed by its spelling (STS-B's have a genre before the name)."""
    counts = {task: int(load_sts(task, folder=data_dir).captions.sum()) for task in STS7}
    official = {"STS12": 750, "STS14": 750, "STS15": 750, "STSBenchmark": 625, "SICK-R": 4927}
    assert counts == {"STS13": 0, "STS16": 0, **official}
    assert not load_sts("Synthetic").captions.any()


def test_a_thinned_split_is_spread_over_the_whole():
    """Prevents checkpoints picked on one phenomenon, and a pair with another's rating."""
    whole = load_sts("Synthetic", "dev")
    some = whole.subsample(500)
    assert len(some) == len(some.sentences1) == len(some.sentences2) == len(some.subsets) == 500
    assert set(some.subsets) == set(whole.subsets)

    def rows(data):
        return set(zip(data.sentences1, data.sentences2, data.scores, data.subsets, strict=True))

    assert rows(some) < rows(whole)
    assert whole.subsample(10_000).fingerprint == whole.fingerprint
