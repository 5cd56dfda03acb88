"""Synthetic conditional STS: two events, and the aspect under which they are compared.

In the form of C-STS, https://arxiv.org/abs/2305.15093: each pair of sentences comes twice, with a
condition under which it is similar and one under which it is not. The ratings follow a rule; no
human gave them.
"""

import functools
from dataclasses import replace
from itertools import cycle, permutations
from random import Random
from typing import NamedTuple

from cselab.data.synthetic.frames import Entity, Event, draw_event, with_slot
from cselab.data.synthetic.lexicon import lexicon
from cselab.data.synthetic.pairs import held_out_sentences
from cselab.data.synthetic.realise import describe
from cselab.data.synthetic.similarity import slot_similarities

CONDITIONS = {
    "verb": "the action",
    "agent": "the one who acts",
    "patient": "what the action is done to",
    "place": "the place",
    "time": "the time",
}
"""The condition of each slot of an event."""
PAIRS = 300
"""Pairs of sentences of a split; each has two conditions, so there are twice as many rows."""
SEEDS = {"dev": 2_000_001, "test": 2_000_002}
APART = 2.0
"""Smallest difference between the two ratings of a pair."""


class ConditionalPair(NamedTuple):
    """Two sentences, a condition for a slot, and their similarity under it, 1 to 5."""

    sentence1: str
    sentence2: str
    condition: str
    score: float
    slot: str


@functools.cache
def conditional_pairs(split: str) -> tuple[ConditionalPair, ...]:
    """The 600 rows of "dev" or "test", equal on every machine.

    The splits share no sentence, with each other or with the synthetic STS. Two rows in sequence
    are one pair under two conditions whose ratings differ by 2 or more. Every slot is as often the
    similar one as the dissimilar one, so that a condition by itself says nothing about the rating.
    """
    taken = set(held_out_sentences())
    if split == "test":
        taken |= {s for row in conditional_pairs("dev") for s in (row.sentence1, row.sentence2)}
    random = Random(SEEDS[split])
    rows: list[ConditionalPair] = []
    slots = cycle(permutations(CONDITIONS, 2))
    while len(rows) < 2 * PAIRS:
        similar, dissimilar = next(slots)
        texts, apart = ("", ""), 0.0
        while apart < APART or len({*texts} - taken) < 2:
            one, two, ratings = _draw(random)
            texts = describe(one, random), describe(two, random)
            apart = ratings[similar] - ratings[dissimilar]
        taken |= {*texts}
        for slot in (similar, dissimilar):
            rows.append(ConditionalPair(*texts, CONDITIONS[slot], ratings[slot], slot))
    return tuple(rows)


def _draw(random: Random) -> tuple[Event, Event, dict[str, float]]:
    """Two events that share one to four slots, and their rating under each condition."""
    while True:
        one, two = _whole_event(random), _whole_event(random)
        for slot in random.sample(list(CONDITIONS), random.randint(1, 4)):
            two = with_slot(two, slot, _alike(getattr(one, slot), random))
        if two.is_possible() and two.patient and two.agent.noun != two.patient.noun:
            similar = slot_similarities(one, two)
            return one, two, {slot: round(1 + 4 * value, 2) for slot, value in similar.items()}


def _whole_event(random: Random) -> Event:
    """An event that is not negated and has all slots: every condition applies to it."""
    while True:
        event = draw_event(random)
        if event.patient and event.place and event.time and not event.negated:
            return event


def _alike(part: Entity | str, random: Random) -> Entity | str:
    """The same part of an event, or a broader action, or another number of the same things."""
    if isinstance(part, Entity):
        return replace(part, number=random.choice((part.number, part.number, 1, 3)))
    verb = lexicon().verbs.get(part)
    return verb.parent if verb and verb.parent and random.random() < 0.5 else part
