"""Triplets, captions and concepts of the synthetic text."""

import functools
import itertools
import operator
import re
from random import Random

from cselab.data.synthetic import captions, describe, draw_frame, same_meaning, triplets
from cselab.data.synthetic.concepts import concepts
from cselab.data.synthetic.frames import Entity, Event
from cselab.data.synthetic.pairs import held_out_sentences
from cselab.data.synthetic.realise import nominalise


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
