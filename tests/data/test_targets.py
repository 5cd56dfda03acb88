"""A teacher's vectors beside the tokens of the same sentences."""

import numpy as np
import pytest

from cselab.data import corpus as corpora
from cselab.data import targets
from cselab.data.corpus import load_corpus, tokenize_corpus
from cselab.errors import DataError


@pytest.fixture
def tokens(text, word_tokenizer, tmp_path):
    """`tokens(*sentences)`: a corpus and its rows."""

    def make(*sentences):
        corpus, cache = load_corpus(text(sentences, f"{len(sentences)}.txt")), tmp_path / "tokens"
        return corpus, tokenize_corpus(corpus, word_tokenizer, max_length=8, cache_dir=cache)

    return make


def test_each_sentence_gets_its_vector_once(tokens, tmp_path, monkeypatch):
    """Prevents vectors in another order, a lost chunk, and a teacher that is asked again."""
    monkeypatch.setattr(corpora, "CHUNK", 2)
    corpus, rows = tokens("the dog", "a man is eating", "the big red ball", "cat", "fish")
    asked = []

    def encode(sentences):
        asked.append(len(sentences))
        return np.array([[len(s), s.count("a")] for s in sentences], dtype=np.float64)

    for _ in range(2):
        both = targets.with_targets(rows, corpus, encode, tmp_path / "teacher" / "vectors.arrow")
    assert asked == [2, 2, 1]
    assert both["target"][:] == [[len(s), s.count("a")] for s in corpus]
    assert both["input_ids"][:] == rows["input_ids"][:]
    kept = {path.name for path in (tmp_path / "teacher").iterdir()}
    assert kept == {"vectors.arrow", "vectors.arrow.lock"}


def test_rows_of_another_text_are_refused(tokens, tmp_path):
    """Prevents a student that learns another sentence's vector."""
    one, rows = tokens("the dog", "a cat")
    other, more = tokens("the dog", "a cat", "fish")
    with pytest.raises(DataError, match="2 rows are not the tokens of 3 sentences"):
        targets.with_targets(rows, other, len, tmp_path / "vectors.arrow")
    targets.with_targets(rows, one, lambda s: np.ones((len(s), 2)), tmp_path / "vectors.arrow")
    with pytest.raises(DataError, match="has 2 vectors for 3 sentences; remove it"):
        targets.with_targets(more, other, len, tmp_path / "vectors.arrow")
