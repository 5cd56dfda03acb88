"""Couples of a paraphrase and a changed copy: who cannot see a change has half of them."""

import numpy as np
import pytest
from scipy.stats import binomtest

from cselab.data.synthetic import couples
from cselab.data.synthetic.sets import COUPLES
from cselab.evaluation import rank_couples
from cselab.evaluation.couples import _ranked

TEXTS = [text for couple in couples() for text in couple[:3]]
WORDS = sorted({word for text in TEXTS for word in text.lower().split()})


def counts(sentences):
    """Vectors of word counts, which have no order."""
    place = {word: i for i, word in enumerate(WORDS)}
    vectors = np.zeros((len(sentences), len(WORDS)))
    for row, sentence in zip(vectors, sentences, strict=True):
        np.add.at(row, [place[word] for word in sentence.lower().split()], 1)
    return vectors


def test_counts_of_words_rank_swapped_roles_by_chance():
    """Prevents a measure that gives an encoder without word order a score for role swaps, as a
    correlation within the swapped pairs did."""
    ranked = rank_couples(counts)
    assert ranked["role_swap"].low < 50 < ranked["role_swap"].high
    assert ranked["unrelated"].share > 95


def test_an_encoder_of_one_direction_ranks_half():
    """Prevents ties that count as right or wrong."""
    found = rank_couples(lambda sentences: np.ones((len(sentences), 3)))
    assert {ranked.share for ranked in found.values()} == {50.0}


@pytest.mark.parametrize(("right", "n"), [(0, 20), (13, 20), (200, 200)])
def test_intervals_are_wilsons(right, n):
    """Prevents an interval of no width where all couples are right."""
    ranked = _ranked(np.array([1.0] * right + [0.0] * (n - right)))
    expected = binomtest(right, n).proportion_ci(method="wilson")
    assert [ranked.low / 100, ranked.high / 100] == pytest.approx([expected.low, expected.high])


def test_a_couple_has_three_wordings_and_no_sentence_twice():
    """Prevents a changed copy that is recognised by its sentence's own wording."""
    for change in {couple.change for couple in couples()}:
        own = [text for couple in couples() if couple.change == change for text in couple[:3]]
        assert len(own) == len({*own}) == 3 * COUPLES, change
    assert len(TEXTS) == 8 * 3 * COUPLES
