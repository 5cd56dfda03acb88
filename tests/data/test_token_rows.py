"""Tokenised rows in one array: what they hold, in which order they come, and pairs of them."""

import random

import numpy as np
import pytest

from cselab.data.token_rows import Rows
from cselab.study.pretraining.objectives import next_sentence_pairs
from cselab.study.pretraining.trainer import batches


@pytest.fixture(scope="module")
def text(word_tokenizer):
    """900 sentences of different lengths."""
    draw, words = random.Random(0), sorted(word_tokenizer.get_vocab())[-30:]
    lines = (" ".join(draw.choices(words, k=draw.randint(3, 12))) for _ in range(2000))
    return list(dict.fromkeys(lines))[:900]


@pytest.fixture(scope="module")
def rows(text, word_tokenizer):
    return Rows.tokenize(text, word_tokenizer, max_length=12)


def test_rows_are_the_tokenizers_own(rows, text, word_tokenizer):
    """Prevents sentences that run into each other, and padding of another number."""
    for i in (0, 1, 450, 899):
        expected = word_tokenizer(text[i], truncation=True, max_length=12)["input_ids"]
        assert rows.flat[rows.starts[i] : rows.starts[i + 1]].tolist() == expected
    padded = rows.padded(np.array([3, 899]), word_tokenizer.pad_token_id)
    some = word_tokenizer([text[3], text[899]], padding=True, truncation=True, max_length=12)
    assert padded.tolist() == some["input_ids"]


def test_every_row_once_an_epoch(rows):
    """Prevents rows that are drawn twice before others are drawn once."""
    drawn = batches(rows.lengths, 100, seed=1)
    first = np.concatenate([next(drawn) for _ in range(9)])
    assert sorted(first) == list(range(900))
    assert not np.array_equal(first, np.concatenate([next(drawn) for _ in range(9)]))


def test_neighbours_are_pairs_as_bert_saw_them(rows, word_tokenizer):
    """Prevents wrong segments, and labels that do not say what follows what."""
    pad = word_tokenizer.pad_token_id
    ids, segments, labels = next_sentence_pairs(rows, 200, pad, np.random.default_rng(0))
    whole = [
        tuple(rows.flat[a:b].tolist()) for a, b in zip(rows.starts, rows.starts[1:], strict=False)
    ]
    place = {row: i for i, row in enumerate(whole)}
    followed = []
    for line, segment in zip(ids, segments, strict=True):
        a = tuple(line[(segment == 0) & (line != pad)].tolist())
        b = (word_tokenizer.cls_token_id, *line[segment == 1].tolist())
        followed.append(place[b] == place[a] + 1)
    wrong = sum(a == bool(b) for a, b in zip(followed, labels.tolist(), strict=True))
    assert wrong <= 2  # a random sentence may be the next one
    assert labels.float().mean() == 0.5
