"""Corpora: lazy, tokenised once, and honest about broken files."""

import errno
import gzip

import pytest
from cselab.data import corpus as corpus_module
from cselab.data.corpus import load_corpus, tokenize_corpus
from cselab.errors import DataError

LINES = ["the dog is running", "", "a cat", "the big red ball is under the table"] * 50


@pytest.fixture(autouse=True)
def _no_folder(monkeypatch):
    monkeypatch.delenv("CSELAB_DATA", raising=False)


@pytest.fixture
def text(tmp_path):
    path = tmp_path / "mine.txt"
    path.write_text("\n".join(LINES) + "\n")
    return path


def test_lines_are_read_lazily_and_as_often_as_needed(text):
    corpus = load_corpus([str(text)])
    assert len(corpus) == 150
    assert list(corpus) == list(corpus) == [line for line in LINES if line]
    assert list(load_corpus([str(text)], limit=2)) == ["the dog is running", "a cat"]
    assert str(corpus.source) == "folder (mine.txt)"


def test_tokenised_once_and_mapped_from_disk(text, tmp_path, word_tokenizer, monkeypatch):
    first = tokenize_corpus(load_corpus([str(text)]), word_tokenizer, max_length=8, cache_dir=tmp_path / "cache")
    assert first.cache_files
    assert first["input_ids"][0] == word_tokenizer("the dog is running")["input_ids"]
    assert first["length"][:3] == [6, 4, 8]  # the third is cut
    assert first["text_hash"][0] == first["text_hash"][3] != first["text_hash"][1]

    def refuse(*args):
        raise AssertionError("tokenised again")

    monkeypatch.setattr(corpus_module, "_write", refuse)
    again = tokenize_corpus(load_corpus([str(text)]), word_tokenizer, max_length=8, cache_dir=tmp_path / "cache")
    assert again["input_ids"] == first["input_ids"]
    with pytest.raises(AssertionError, match="tokenised again"):  # keyed by content: another length is another file
        tokenize_corpus(load_corpus([str(text)]), word_tokenizer, max_length=9, cache_dir=tmp_path / "cache")
    text.write_text("a dog\na cat\n")  # the released code's cache was keyed by file name and served stale text
    with pytest.raises(AssertionError, match="tokenised again"):
        tokenize_corpus(load_corpus([str(text)]), word_tokenizer, max_length=8, cache_dir=tmp_path / "cache")


def test_a_full_disk_leaves_nothing_behind(text, tmp_path, word_tokenizer, monkeypatch):
    def full(corpus, tokenizer, max_length, path):
        path.write_bytes(b"half")
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(corpus_module, "_write", full)
    with pytest.raises(OSError, match="No space left"):
        tokenize_corpus(load_corpus([str(text)]), word_tokenizer, max_length=8, cache_dir=tmp_path / "cache")
    assert [path.suffix for path in (tmp_path / "cache").iterdir()] == [".lock"]


def test_a_document_on_one_line_is_refused(text):
    text.write_text("a dog\n" + "word " * 10_000 + "\n")
    with pytest.raises(DataError, match="mine.txt, line 2: 10,000 words on one line; expected one sentence a line"):
        list(load_corpus([str(text)]))


def test_an_empty_corpus(text):
    text.write_text("\n \n")
    with pytest.raises(DataError, match="mine.txt: no sentence in it; expected one sentence a line"):
        load_corpus([str(text)])


def test_not_utf8_and_truncated(text, tmp_path):
    text.write_bytes(b"a dog\ncaf\xe9\n")
    with pytest.raises(DataError, match="mine.txt, line 2: not UTF-8"):
        list(load_corpus([str(text)]))
    cut = tmp_path / "cut.txt.gz"
    cut.write_bytes(gzip.compress(b"a dog runs\n" * 5000)[:-20])
    with pytest.raises(DataError, match="cut.txt.gz is truncated or damaged"):
        list(load_corpus([str(cut)]))


def test_names_are_looked_for_in_the_folder(tmp_path):
    (tmp_path / "corpus").mkdir()
    (tmp_path / "corpus" / "books.txt.gz").write_bytes(gzip.compress(b"a dog\na cat\n"))
    assert list(load_corpus(["books"], folder=tmp_path)) == ["a dog", "a cat"]
    with pytest.raises(DataError, match="no corpus 'boks' in .*; did you mean 'books'"):
        load_corpus(["boks"], folder=tmp_path)
    with pytest.raises(DataError, match="corpus 'books' is looked for in the data folder; set data_dir"):
        load_corpus(["books"])
    with pytest.raises(DataError, match="no corpus file .*nowhere.txt"):
        load_corpus([str(tmp_path / "nowhere.txt")])


def test_without_a_folder_the_embedded_world_is_used():
    corpus = load_corpus(limit=20)
    assert corpus.source.kind == "embedded"
    assert len(set(corpus)) == 20


@pytest.mark.real_data
def test_real_sentences(data_dir):
    corpus = load_corpus(folder=data_dir, limit=1000)
    assert len(corpus) == 1000
    assert corpus.source.kind == "folder"
