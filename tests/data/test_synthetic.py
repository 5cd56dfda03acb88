"""Synthetic text: the same everywhere, distinct, disjoint from its tests, rated by a rule that
behaves."""

import hashlib
import itertools
import os
import re
import subprocess
import sys
from collections import Counter
from random import Random

import pytest

from cselab.data.synthetic import describe, draw_frame, sentences, similarity, sts_pairs
from cselab.data.synthetic.frames import Definition, Entity, Event, Market
from cselab.data.synthetic.lexicon import lexicon

N = 20_000


@pytest.fixture(scope="module")
def text():
    return list(sentences(N, 0))


def frames(n, seed=0):
    random = Random(seed)
    return [draw_frame(random) for _ in range(n)]


def test_sentences_are_distinct_and_a_larger_draw_begins_with_a_smaller(text):
    """Prevents duplicates, which are no negatives, and runs of two sizes on unrelated text."""
    assert len(set(text)) == N
    assert text[:500] == list(sentences(500, 0))
    assert text[:500] != list(sentences(500, 1))


DIGEST = """
import hashlib
from cselab.data.synthetic import sentences, sts_pairs
print(hashlib.sha256(repr([*sentences(3000, 5), *sts_pairs("test")]).encode()).hexdigest())
"""


def test_the_same_text_whatever_the_hash_seed():
    """Prevents an order that depends on a set of strings: two machines would train on different
    text."""
    digests = {
        subprocess.run(
            [sys.executable, "-c", DIGEST],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    here = hashlib.sha256(repr([*sentences(3000, 5), *sts_pairs("test")]).encode()).hexdigest()
    assert digests == {here.encode() + b"\n"}


def test_no_sentence_of_the_corpus_or_of_dev_is_in_test(text):
    """Prevents scores on sentences that were trained on."""
    dev, test = (
        {s for p in sts_pairs(split) for s in (p.sentence1, p.sentence2)}
        for split in ("dev", "test")
    )
    assert not dev & test
    assert not (dev | test) & set(text)


def test_articles_and_plurals_agree(text):
    """Prevents "a apple", "an dog", "one dogs", "three dog"."""
    said = " ".join(text)
    assert not re.search(r"\b[Aa] [aeio]\w", said)
    assert not re.search(r"\b[Aa]n [^aeiou\W]", said)
    plural = {forms[1] for noun in lexicon().nouns.values() for forms in noun.words}
    singular = {forms[0] for noun in lexicon().nouns.values() for forms in noun.words} - plural
    only_plural = plural - {forms[0] for noun in lexicon().nouns.values() for forms in noun.words}
    for word in re.findall(r"\b(?:[Aa]n?) (\w+)(?= (?:is|was|are|were)\b)", said):
        assert word not in only_plural
    for word in re.findall(
        r"\b(?:[Tt]wo|[Tt]hree|[Ff]our|[Ff]ive) (\w+)(?= (?:is|was|are|were)\b)", said
    ):
        assert word not in singular
    assert not re.search(r"  |\{|\}|None| [.,]", said)
    assert all(re.fullmatch(r"[A-Z].*[.]", sentence) for sentence in text)


# --------------------------------------------------------------------------------------- the rating


def test_similarity_is_symmetric_in_range_and_full_for_the_same_meaning():
    """Prevents ratings that depend on which sentence comes first."""
    some = frames(150)
    for a, b in itertools.product(some[:60], some):
        assert similarity(a, b) == pytest.approx(similarity(b, a))
        assert 0 <= similarity(a, b) <= 5
    assert all(similarity(frame, frame) == pytest.approx(5) for frame in some)


def test_similarity_orders_changes_as_a_person_would():
    """Prevents a rule under which a dropped adjective weighs as much as another action."""
    words = lexicon()
    verb = next(v for v in words.verbs.values() if v.patients and v.opposite)
    agent, patient = words.by_kind[verb.agents[0]][0], words.by_kind[verb.patients[0]][0]
    adjective = words.adjectives_of[words.nouns[agent].kind][0]
    place = next(iter(words.places))
    base = Event(verb.name, Entity(agent, 1, adjective), Entity(patient), place)

    def rated(**changes):
        return similarity(base, Event(**{**vars(base), **changes}))

    no_adjective = rated(agent=Entity(agent))
    no_place = rated(place=None)
    opposite = rated(verb=verb.opposite)
    negated = rated(negated=True)
    assert 5 > no_adjective > no_place > negated
    assert no_place > opposite
    assert similarity(base, Market(next(iter(words.goods)), next(iter(words.moves)), 5)) == 0
    kind = next(name for name, noun in words.nouns.items() if noun.parent)
    assert similarity(Definition(kind), Definition(kind)) == 5


def test_how_it_is_said_is_no_part_of_the_meaning():
    """The same frame gives several sentences (or there are no paraphrases to learn from)."""
    random = Random(3)
    said = [len({describe(frame, random) for _ in range(12)}) for frame in frames(60, seed=3)]
    assert sum(n > 3 for n in said) > 50


# ---------------------------------------------------------------------------------------- the pairs


@pytest.mark.parametrize("split", ["dev", "test"])
def test_pairs_cover_the_scale_evenly_and_every_phenomenon(split):
    """Prevents a test whose pairs are nearly all unrelated, so that telling those apart is
    enough."""
    pairs = sts_pairs(split)
    assert len(pairs) == 1500
    assert set(Counter(min(4, int(pair.score)) for pair in pairs).values()) == {300}
    tags = Counter(pair.tag for pair in pairs)
    assert len(tags) == 10
    assert min(tags.values()) >= 80
    assert all(pair.sentence1 != pair.sentence2 for pair in pairs)


@pytest.mark.parametrize("split", ["dev", "test"])
def test_no_tag_is_a_rating(split):
    """Prevents a phenomenon whose pairs all have one rating: a rank correlation within it would
    mean nothing."""
    scores = {}
    for pair in sts_pairs(split):
        scores.setdefault(pair.tag, set()).add(round(pair.score, 1))
    assert all(len(values) >= 8 for values in scores.values()), {
        tag: len(v) for tag, v in scores.items()
    }
