"""A teacher's vectors beside the tokens of the same sentences."""

import numpy as np
import pytest
from seal_helpers import DAMAGES

from cselab.data import corpus as corpora
from cselab.data import targets
from cselab.data.corpus import load_corpus, tokenize_corpus
from cselab.errors import DataError


@pytest.fixture
def text(tmp_path):
    def make(*lines):
        path = tmp_path / f"{len(lines)}.txt"
        path.write_text("\n".join(lines))
        return load_corpus([str(path)])

    return make


def test_each_sentence_gets_its_vector_once(text, word_tokenizer, tmp_path, monkeypatch):
    """Prevents vectors in another order than the tokens, a chunk that is lost, and a teacher that
    is asked again."""
    monkeypatch.setattr(corpora, "CHUNK", 2)
    corpus, asked = text("the dog", "a man is eating", "the big red ball", "cat", "fish"), []

    def encode(sentences):
        asked.append(len(sentences))
        return np.array([[len(s), s.count("a")] for s in sentences], dtype=np.float64)

    rows = tokenize_corpus(corpus, word_tokenizer, max_length=8, cache_dir=tmp_path / "tokens")
    for _ in range(2):
        both = targets.with_targets(rows, corpus, encode, tmp_path / "teacher" / "vectors.arrow")
    assert asked == [2, 2, 1]
    assert both["target"][:] == [[len(s), s.count("a")] for s in corpus]
    assert both["input_ids"][:] == rows["input_ids"][:]
    kept = {path.name for path in (tmp_path / "teacher").iterdir()}
    assert kept == {"vectors.arrow", "vectors.arrow.lock"}


@pytest.mark.parametrize("how", DAMAGES)
def test_damaged_vectors_are_encoded_again(how, text, word_tokenizer, tmp_path, capsys):
    """Prevents a student of other vectors, and ArrowInvalid for ever."""
    corpus, path, asked = text("the dog", "a cat"), tmp_path / "vectors.arrow", []

    def encode(sentences):
        asked.append(sentences)
        return [[len(s), 1] for s in sentences]

    rows = tokenize_corpus(corpus, word_tokenizer, max_length=8, cache_dir=tmp_path / "tokens")
    targets.with_targets(rows, corpus, encode, path)
    DAMAGES[how](path)
    both = targets.with_targets(rows, corpus, encode, path)
    assert both["target"][:] == [[7, 1], [5, 1]]
    assert len(asked) == 2
    assert capsys.readouterr().err.count("made again") == (how != "gone")


def test_rows_of_another_text_are_refused(text, word_tokenizer, tmp_path):
    """Prevents a student that learns another sentence's vector."""
    one, other = text("the dog", "a cat"), text("the dog", "a cat", "fish")
    rows = tokenize_corpus(one, word_tokenizer, max_length=8, cache_dir=tmp_path / "tokens")
    with pytest.raises(DataError, match="2 rows are not the tokens of 3 sentences"):
        targets.with_targets(rows, other, len, tmp_path / "vectors.arrow")
    targets.with_targets(rows, one, lambda s: np.ones((len(s), 2)), tmp_path / "vectors.arrow")
    more = tokenize_corpus(other, word_tokenizer, max_length=8, cache_dir=tmp_path / "tokens")
    with pytest.raises(DataError, match="has 2 vectors for 3 sentences; remove it"):
        targets.with_targets(more, other, len, tmp_path / "vectors.arrow")


def test_a_teacher_that_fails_leaves_nothing(text, word_tokenizer, tmp_path):
    """Prevents half of the vectors from being taken for all."""
    corpus = text("the dog", "a cat")
    rows = tokenize_corpus(corpus, word_tokenizer, max_length=8, cache_dir=tmp_path / "tokens")
    with pytest.raises(ZeroDivisionError):
        targets.with_targets(rows, corpus, lambda s: 1 / 0, tmp_path / "teacher" / "vectors.arrow")
    assert [path.name for path in (tmp_path / "teacher").iterdir()] == ["vectors.arrow.lock"]
