"""Corpora: read lazily, tokenised once, nothing half-written."""

import errno
import gzip
import sys
from concurrent.futures import ThreadPoolExecutor
from copy import deepcopy
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import Mock

import datasets
import pytest
from seal_helpers import DAMAGES

import cselab.data.corpus as module
from cselab.data import load_corpus, tokenize_corpus
from cselab.errors import DataError

LINES = [
    "the man is playing",
    "a dog",
    "  the cat is eating fish  ",
    "",
    "a dog",
    "two small birds in the park",
]
SENTENCES = [line.strip() for line in LINES if line]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A data folder with two small corpora under the default names."""
    monkeypatch.delenv("CSELAB_DATA", raising=False)
    (tmp_path / "corpus").mkdir()
    (tmp_path / "corpus-large").mkdir()
    for name, lines in {"wiki1m-piece": LINES, "wikipedia-2014": ["the end ."]}.items():
        (tmp_path / "corpus" / f"{name}.txt.gz").write_bytes(
            gzip.compress("\n".join(lines).encode() + b"\n")
        )
    (tmp_path / "corpus-large" / "more.txt.gz").write_bytes(gzip.compress(b"one line\n"))
    return tmp_path


def test_the_folders_default_is_its_wikipedia_sentences(folder):
    """Prevents a text that depends on the order of files, or a corpus that can be read once."""
    corpus = load_corpus(folder=folder)
    assert list(corpus) == [*SENTENCES, "the end ."]
    assert list(corpus) == list(corpus)  # a corpus can be read again
    assert len(corpus) == 6
    assert corpus.source.kind == "folder"
    assert "wikipedia-2014.txt.gz" in str(corpus.source)


def test_text_is_read_in_every_clear_form(folder, text, tmp_path, monkeypatch):
    """Prevents a path taken for a name, and "is not a text" for a suffix in capitals or none."""
    monkeypatch.chdir(tmp_path)
    for name in ("a.TXT", "a,b.txt", "a.text", "plain", "more"):
        text(["my own line\r"], name)
    (tmp_path / "b.txt").write_bytes(gzip.compress(b"my own line\n"))
    for name in ("a.TXT", "a,b.txt", "a.text", "plain", "b.txt"):
        for path in (name, tmp_path / name, [tmp_path / name]):
            assert list(load_corpus(path, folder=folder)) == ["my own line"]
    assert list(load_corpus(["more", "b.txt"], folder=folder)) == ["one line", "my own line"]
    assert list(load_corpus([str(folder / "corpus" / "wikipedia-2014.txt.gz")])) == ["the end ."]


def test_pairs_give_their_sentences_without_scores(folder):
    """Prevents a header, a score or a test split in the training text."""
    (folder / "sts").mkdir()
    rows = b"sentence1\tsentence2\tscore\na dog\ta cat\t3.0\na bird\ta dog\t1.0\n"
    for split in ("train", "test"):
        (folder / "sts" / f"sickr-{split}.tsv.gz").write_bytes(gzip.compress(rows))
    corpus = load_corpus(["more", "sickr-train"], folder=folder)
    assert list(corpus) == ["one line", "a dog", "a cat", "a bird"]
    with pytest.raises(DataError, match="no corpus 'sickr-test'"):
        load_corpus("sickr-test", folder=folder)


def test_the_fingerprint_is_of_the_text(folder, text):
    """Prevents tokens of one text being served for another file of the same name."""
    own = load_corpus(text(LINES))
    assert load_corpus("wiki1m-piece", folder=folder).fingerprint == own.fingerprint
    assert load_corpus(text([*LINES, "more"])).fingerprint != own.fingerprint


def test_a_limit_is_a_random_sample_in_order_and_samples_nest(text):
    """Prevents a limited run from training on the first articles of a file only."""
    lines = [f"sentence number {i}" for i in range(1000)]
    path = text(lines)
    small, large = load_corpus(path, limit=50), load_corpus(path, limit=200)
    numbers = [int(line.split()[-1]) for line in small]
    assert (len(small), len(numbers)) == (50, 50)
    assert numbers == sorted(numbers)
    assert max(numbers) > 800 > 200 > min(numbers)
    assert set(small) < set(large)
    assert set(small) != set(load_corpus(path, limit=50, seed=1))
    whole = load_corpus(path, limit=1000)
    assert whole.fingerprint == load_corpus(path).fingerprint
    samples = (whole, small, large, load_corpus(path, limit=50, seed=1))
    assert len({corpus.fingerprint for corpus in samples}) == 4


def test_synthetic_text_is_used_where_there_is_no_other(monkeypatch):
    """Prevents a workbook that needs a download, and a seed that does not reach the text."""

    def sentences(n, seed):
        return iter([f"sentence {seed}-{i}" for i in range(n)])

    monkeypatch.setitem(sys.modules, "cselab.data.synthetic", SimpleNamespace(sentences=sentences))
    monkeypatch.delenv("CSELAB_DATA", raising=False)
    corpus = load_corpus(limit=5, seed=2)
    assert (corpus.source.kind, len(corpus), list(corpus)[-1]) == ("embedded", 5, "sentence 2-4")
    assert load_corpus("synthetic", limit=5, seed=3).fingerprint != corpus.fingerprint
    with pytest.raises(DataError, match="'synthetic' cannot be mixed, got synthetic, more"):
        load_corpus(["synthetic", "more"])


def test_the_hub_has_what_the_folder_lacks_and_nothing_stands_in_for_it(folder, text, monkeypatch):
    """Prevents a training at paper size on generated text because the hub did not answer."""
    answer = Mock(return_value=Path(text(["from the hub"])))
    monkeypatch.setattr("cselab.data.corpus.hub_file", answer)
    assert load_corpus(folder=folder, hub=True).source.kind == "folder"
    answer.assert_not_called()
    corpus = load_corpus(hub=True)
    assert (corpus.source.kind, list(corpus)) == ("hub", ["from the hub"])
    answer.assert_called_with("princeton-nlp/datasets-for-simcse", "wiki1m_for_simcse.txt")
    both = load_corpus(["wiki1m", "more"], folder=folder, hub=True)  # named: no folder replaces it
    assert (both.source.kind, list(both)) == ("hub", ["from the hub", "one line"])
    answer.side_effect = DataError("not in the hub's cache")
    with pytest.raises(DataError, match="not in the hub's cache"):
        load_corpus(hub=True)


def test_a_corpus_that_cannot_be_read_is_refused_in_one_line(folder, text, tmp_path):
    """Prevents a training on text that was not asked for."""
    for message, name, options in [
        ("'more' is looked for in the data folder; set data_dir", "more", {"folder": None}),
        ("wiki1m is on the hub; set hub=True", "wiki1m", {}),
        ("limit=0 leaves no sentences", text(LINES, "lines.txt"), {"limit": 0}),
        ("no corpus 'wiki1m-piece' in", None, {"folder": tmp_path / "corpus"}),
    ]:
        with pytest.raises(DataError, match=message) as caught:
            load_corpus(name, **{"folder": folder, **options})
        assert "\n" not in str(caught.value)


@pytest.fixture
def tokenise(word_tokenizer, tmp_path):
    """`tokenise(corpus, tokenizer)`: at most six tokens, in the folder cache."""

    def tokenise(corpus, tokenizer=word_tokenizer, max_length=6):
        cache = tmp_path / "cache"
        return tokenize_corpus(corpus, tokenizer, max_length=max_length, cache_dir=cache)

    return tokenise


@pytest.fixture
def calls(word_tokenizer, monkeypatch):
    """How many sentences each call of the tokenizer got."""
    seen = []
    original = type(word_tokenizer).__call__

    def call(self, text, **options):
        seen.append(len(text))
        return original(self, text, **options)

    monkeypatch.setattr(type(word_tokenizer), "__call__", call)
    return seen


def test_a_corpus_is_tokenised_once(text, word_tokenizer, calls, tokenise, caplog):
    """Prevents tokens made twice because the tokenizer keeps the last call's truncation."""
    caplog.set_level("INFO", logger="cselab")
    first = tokenise(load_corpus(text(LINES)))
    assert calls == [5]
    word_tokenizer(["a dog"], padding=True, truncation=True, max_length=3)
    calls.clear()
    again = tokenise(load_corpus(text(LINES, "copy.txt")))
    assert calls == []
    assert again["input_ids"][:] == first["input_ids"][:]
    assert "tokenised into" in caplog.messages[0]
    assert "reused from" in caplog.messages[-1]


def test_rows_are_what_the_tokenizer_gives(text, word_tokenizer, tokenise, monkeypatch, tmp_path):
    """Prevents rows lost or repeated where chunks meet, and a second copy in the home folder."""
    monkeypatch.setattr(module, "CHUNK", 2)
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "home")
    rows = tokenise(load_corpus(text(LINES)))
    expected = word_tokenizer(SENTENCES, truncation=True, max_length=6)["input_ids"]
    assert rows["input_ids"][:] == expected
    assert rows["length"][:] == [len(ids) for ids in expected]
    assert max(rows["length"]) == 6
    assert rows.features["input_ids"].feature.dtype == "int32"
    hashes = rows["text_hash"][:]
    assert hashes[1] == hashes[3]
    assert len(set(hashes)) == 4
    (path,) = (tmp_path / "cache").glob("*.arrow")
    assert [file["filename"] for file in rows.cache_files] == [str(path)]  # memory-mapped
    assert not (tmp_path / "home").exists()


def test_another_text_length_or_tokenizer_is_another_key(
    text, word_tokenizer, calls, tokenise, tmp_path
):
    """Prevents stale tokens; the released code keys them on the file's name alone."""
    from tokenizers import normalizers

    corpus = load_corpus(text(LINES))
    other, left = deepcopy(word_tokenizer), deepcopy(word_tokenizer)
    other.backend_tokenizer.normalizer = normalizers.Sequence([])
    left.truncation_side = "left"
    for sentences, tokenizer, length in [
        (corpus, word_tokenizer, 6),
        (corpus, word_tokenizer, 5),
        (corpus, other, 6),
        (corpus, left, 6),
        (load_corpus(text(LINES), limit=4), word_tokenizer, 6),
    ]:
        calls.clear()
        tokenise(sentences, tokenizer, length)
        assert calls
    assert len(list((tmp_path / "cache").glob("*.arrow"))) == 5


def test_several_callers_at_once_tokenise_once(text, word_tokenizer, tokenise, monkeypatch):
    """Prevents two trainings that write the same file."""
    written, original = [], module._write

    def write(*arguments):
        written.append(1)
        original(*arguments)

    monkeypatch.setattr(module, "_write", write)
    corpus = load_corpus(text(LINES))
    with ThreadPoolExecutor(4) as pool:
        jobs = [pool.submit(tokenise, corpus, deepcopy(word_tokenizer)) for _ in range(4)]
        results = [job.result()["input_ids"][:] for job in jobs]
    assert written == [1]
    assert all(result == results[0] for result in results)


@pytest.mark.parametrize("how", DAMAGES)
def test_damaged_tokens_are_tokenised_again(how, text, tokenise, tmp_path, capsys):
    """Prevents other tokens under the same key, and ArrowInvalid until somebody removes them."""
    corpus = load_corpus(text(LINES))
    expected = tokenise(corpus).to_list()
    (path,) = (tmp_path / "cache").glob("*.arrow")
    DAMAGES[how](path)
    assert tokenise(corpus).to_list() == expected
    assert capsys.readouterr().err.count(f"{path} is damaged") == (how != "gone")
    assert path.is_file()


@pytest.mark.parametrize(
    ("failure", "raised", "message"),
    [
        (OSError(errno.ENOSPC, "No space left on device"), DataError, "^no space .*cache: free"),
        (OSError(errno.EIO, "Input/output error"), OSError, "Input/output"),
        (KeyboardInterrupt(), KeyboardInterrupt, "^$"),
    ],
)
def test_a_failed_write_leaves_nothing(
    failure, raised, message, text, tokenise, tmp_path, monkeypatch
):
    """Prevents half a corpus from being taken for the whole one by the next run."""
    monkeypatch.setattr(module, "CHUNK", 2)
    corpus, hashed = load_corpus(text(LINES)), []

    def fail_late(line):
        hashed.append(line)
        if len(hashed) == 4:
            raise failure
        return 0

    monkeypatch.setattr(module, "_text_hash", fail_late)
    with pytest.raises(raised, match=message):
        tokenise(corpus)
    assert [path.suffix for path in (tmp_path / "cache").iterdir()] in ([".lock"], [])
    monkeypatch.undo()
    assert len(tokenise(corpus)) == 5


def test_a_slow_tokenizer_is_refused(text, tokenise):
    """Prevents a key that does not know what the tokenizer does."""
    from transformers import ByT5Tokenizer

    with pytest.raises(DataError, match="ByT5Tokenizer is not a fast tokenizer"):
        tokenise(load_corpus(text(LINES)), ByT5Tokenizer())


@pytest.mark.real_data
def test_real_corpora_have_their_lines(data_dir):
    """Prevents sentences that the reader loses."""
    assert len(load_corpus(folder=data_dir)) == 10_482 + 235_368
