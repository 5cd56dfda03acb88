"""Synthetic text: the same everywhere, distinct, disjoint from its tests, rated by a rule."""

import functools
import hashlib
import itertools
import operator
import re
from collections import Counter
from random import Random

import pytest

from cselab.data.synthetic import (
    captions,
    describe,
    draw_frame,
    same_meaning,
    sentences,
    similarity,
    sts_pairs,
    triplets,
)
from cselab.data.synthetic.concepts import concepts
from cselab.data.synthetic.frames import Definition, Entity, Event, Market
from cselab.data.synthetic.lexicon import lexicon
from cselab.data.synthetic.realise import nominalise
from cselab.data.synthetic.sets import held_out_sentences


def frames(n, seed=0):
    random = Random(seed)
    return [draw_frame(random) for _ in range(n)]


def test_sentences_are_distinct_and_a_larger_draw_begins_with_a_smaller(synthetic_text):
    """Prevents duplicates, which are no negatives, and runs of two sizes on unrelated text."""
    assert len(set(synthetic_text)) == len(synthetic_text)
    assert synthetic_text[:500] == list(sentences(500, 0))
    assert synthetic_text[:500] != list(sentences(500, 1))


def test_the_text_of_recorded_results_is_unchanged(synthetic_text):
    """Prevents other synthetic text under the seeds of recorded results."""
    texts = [*synthetic_text, *map(tuple, sts_pairs("dev")), *map(tuple, sts_pairs("test"))]
    assert hashlib.sha256(repr(texts).encode()).hexdigest()[:16] == "01ed57ea93010d94"


def test_no_sentence_of_the_corpus_or_of_dev_is_in_test(synthetic_text):
    """Prevents scores on sentences that were trained on."""
    dev, test = ({s for p in sts_pairs(split) for s in p[:2]} for split in ("dev", "test"))
    assert not dev & test
    assert not (dev | test) & set(synthetic_text)


def test_articles_and_plurals_agree(synthetic_text):
    """Prevents "a apple", "an dog", "one dogs", "three dog"."""
    text = " ".join(synthetic_text)
    assert not re.search(r"\b[Aa] [aeio]\w|\b[Aa]n [^aeiou\W]", text)
    nouns = [forms for noun in lexicon().nouns.values() for forms in noun.words]
    singulars, plurals = map(set, zip(*nouns, strict=True))
    for word in re.findall(r"\b(?:[Aa]n?) (\w+)(?= (?:is|was|are|were)\b)", text):
        assert word not in plurals - singulars
    numbers = r"\b(?:[Tt]wo|[Tt]hree|[Ff]our|[Ff]ive) (\w+)(?= (?:is|was|are|were)\b)"
    for word in re.findall(numbers, text):
        assert word not in singulars - plurals
    assert not re.search(r"  |\{|\}|None| [.,]", text)
    assert all(re.fullmatch(r"[A-Z].*[.]", sentence) for sentence in synthetic_text)


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
    base = Event(verb.name, Entity(agent, 1, adjective), Entity(patient), next(iter(words.places)))

    def rate(**changes):
        return similarity(base, Event(**{**vars(base), **changes}))

    no_place = rate(place=None)
    assert 5 > rate(agent=Entity(agent)) > no_place > rate(negated=True)
    assert no_place > rate(verb=verb.opposite)
    assert similarity(base, Market(next(iter(words.goods)), next(iter(words.moves)), 5)) == 0
    narrow = next(name for name, noun in words.nouns.items() if noun.parent)
    assert similarity(Definition(narrow), Definition(narrow)) == 5


def test_a_meaning_has_several_wordings():
    """Prevents text without paraphrases to learn from."""
    random = Random(3)
    wordings = [len({describe(frame, random) for _ in range(12)}) for frame in frames(60, seed=3)]
    assert sum(n > 3 for n in wordings) > 50


@pytest.mark.parametrize("split", ["dev", "test"])
def test_pairs_cover_the_scale_evenly_and_no_tag_is_a_rating(split):
    """Prevents a test of nearly all unrelated pairs, and a phenomenon with one rating."""
    pairs = sts_pairs(split)
    assert len(pairs) == 1500
    assert set(Counter(min(4, int(pair.score)) for pair in pairs).values()) == {300}
    tags = Counter(pair.tag for pair in pairs)
    assert len(tags) == 10
    assert min(tags.values()) >= 80
    assert all(pair.sentence1 != pair.sentence2 for pair in pairs)
    for tag in tags:
        assert len({round(pair.score, 1) for pair in pairs if pair.tag == tag}) >= 8, tag


def test_rewording_a_frame_keeps_its_concepts():
    """Prevents a word counted as another concept, and a missing synonym."""
    random = Random(5)
    frames = [draw_frame(random) for _ in range(800)]
    assert all(same_meaning(describe(frame, random), describe(frame, random)) for frame in frames)


def test_an_action_as_a_noun_keeps_its_concepts():
    """Prevents a nominalisation that loses who did it, or to whom, or that it did not happen."""
    random = Random(6)
    frames = [frame for frame in (draw_frame(random) for _ in range(800)) if type(frame) is Event]
    pairs = [(nominalise(frame, random), describe(frame, random)) for frame in frames]
    pairs = [(a, b) for a, b in pairs if a is not None]
    assert len(pairs) > 100
    assert all(same_meaning(a, b) for a, b in pairs)
    theft = nominalise(Event("steal", Entity("nurse"), Entity("car", 2), time="monday"), random)
    assert re.fullmatch(
        r"The theft of two (cars|automobiles) by a nurse (took place|happened) on Monday\.", theft
    )


def test_another_meaning_has_other_concepts():
    """Prevents a change of meaning that counts as a rewording."""
    assert not same_meaning("A dog is sleeping.", "A dog is not sleeping.")
    assert not same_meaning("Two dogs are sleeping.", "Three dogs are sleeping.")
    assert not same_meaning("A dog is sleeping.", "An animal is sleeping.")
    assert same_meaning("A physician slept.", "The doctor is sleeping.")
    assert sum(concepts("Three small dogs slept at night.").values()) == 5


def test_triplets_entail_and_contradict():
    """Prevents a "contradiction" that may hold, and an "entailment" that says more."""
    some = list(triplets(200))
    assert len(set(some)) == 200
    assert some[:50] == list(triplets(50))
    for t in some:
        assert not same_meaning(t.anchor, t.contradicted)
        assert sum(concepts(t.entailed).values()) <= sum(concepts(t.anchor).values())
        assert "not" not in t.entailed.split()
    assert not {s for t in some for s in t} & held_out_sentences()


def test_captions_describe_one_scene_each():
    """Prevents captions of one scene that share nothing, and scenes that are in the test pairs."""
    groups = list(captions(60))
    everything = list(itertools.chain.from_iterable(groups))
    assert all(len(set(group)) == 5 for group in groups)
    assert len(set(everything)) == 300
    assert not set(everything) & held_out_sentences()
    for group in groups:  # who does what is in every caption, whatever else is left out
        shared = functools.reduce(operator.and_, map(concepts, group))
        assert sum(shared.values()) >= 2
