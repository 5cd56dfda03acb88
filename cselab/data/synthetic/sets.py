"""Synthetic sets: rated pairs, triplets as from NLI, captions, and pairs under a condition."""

import functools
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from itertools import cycle, permutations
from random import Random
from typing import NamedTuple

from cselab.data.synthetic.changes import CHANGES, change_detail, contradict, generalise, shorten
from cselab.data.synthetic.frames import Entity, Event, draw_event, draw_market, with_slot
from cselab.data.synthetic.lexicon import lexicon
from cselab.data.synthetic.realise import describe, nominalise
from cselab.data.synthetic.similarity import similarity, slot_similarities

PAIRS = 1500
AT_MOST = (220, 100, 75, 55, 55)
"""Largest number of pairs of one tag in each fifth of the scale, so that a tag does not determine
the rating; every fifth has the same number of pairs."""
SEEDS = {"dev": 1_000_001, "test": 1_000_002}
CONDITIONS = {
    "verb": "the action",
    "agent": "the one who acts",
    "patient": "what the action is done to",
    "place": "the place",
    "time": "the time",
}
"""The condition of each slot of an event."""
CONDITIONAL_PAIRS = 300
"""Pairs of sentences of a split; each has two conditions, so there are twice as many rows."""
CONDITIONAL_SEEDS = {"dev": 2_000_001, "test": 2_000_002, "train": 2_000_003}
APART = 2.0
"""Smallest difference between the two ratings of a pair."""
COUPLES = 120
"""Couples of each change."""
SAME = ("synonym", "paraphrase")
"""Tags of pairs whose meaning is not changed."""


class StsPair(NamedTuple):
    """Two sentences, their rating (0 to 5), and a tag: the change between them."""

    sentence1: str
    sentence2: str
    score: float
    tag: str


@functools.cache
def sts_pairs(split: str) -> tuple[StsPair, ...]:
    """The 1,500 pairs of "dev" or "test", equal on every machine; the splits share no sentence."""
    taken: set[str] = set()
    if split == "test":
        taken = {text for pair in sts_pairs("dev") for text in (pair.sentence1, pair.sentence2)}
    pairs: list[StsPair] = []
    fifths: Counter[int] = Counter()
    tags: Counter[tuple[str, int]] = Counter()
    for pair in _candidates(Random(SEEDS[split])):
        fifth = min(4, int(pair.score))
        texts = {pair.sentence1, pair.sentence2}
        full = fifths[fifth] == PAIRS // 5 or tags[pair.tag, fifth] == AT_MOST[fifth]
        if full or texts & taken or len(texts) < 2:
            continue
        taken |= texts
        fifths[fifth] += 1
        tags[pair.tag, fifth] += 1
        pairs.append(pair)
        if len(pairs) == PAIRS:
            break
    return tuple(pairs)


def _candidates(random: Random) -> Iterator[StsPair]:
    # for nominalisations only: no corpus has any, so that this paraphrase is new to every model
    random_nominal = Random(0)
    while True:
        for tag, change in CHANGES.items():
            second = None
            # None: the event has no broader word, no opposite, or no roles that can be swapped
            while second is None:
                market = tag in ("number", "antonym") and random.random() < 0.1
                first = draw_market(random) if market else draw_event(random)
                second = change(first, random)
            if isinstance(second, Event) and isinstance(first, Event) and tag != "unrelated":
                # further changes, so that a tag does not determine the rating
                for _ in range(random.choice((0, 0, 1, 2))):
                    second = change_detail(second, random)
            score = round(similarity(first, second), 2)
            sentence1 = describe(first, random, plain=tag == "synonym")
            sentence2 = describe(second, random)
            if isinstance(second, Event) and tag == "paraphrase" and random_nominal.random() < 0.5:
                sentence2 = nominalise(second, random_nominal) or sentence2
            if random.random() < 0.5:
                sentence1, sentence2 = sentence2, sentence1
            yield StsPair(sentence1, sentence2, score, tag)


class Couple(NamedTuple):
    """A sentence, one of the same meaning and one with a `change`; both have wording of their own.

    Words, voice, tense and order of the two are drawn alike, so that one who cannot see the change
    ranks half of the couples rightly.
    """

    sentence: str
    paraphrase: str
    changed: str
    change: str


@functools.cache
def couples() -> tuple[Couple, ...]:
    """120 couples of each change of meaning, equal on every machine."""
    random, found = Random("couples"), []
    for tag, change in CHANGES.items():
        if tag in SAME:
            continue
        seen: set[str] = set()
        while len(seen) < 3 * COUPLES:
            first = draw_event(random)
            second = change(first, random)
            if second is None or similarity(first, second) == 5:
                continue
            one, same, changed = (describe(frame, random) for frame in (first, first, second))
            if len({one, same, changed} - seen) == 3:
                seen |= {one, same, changed}
                found.append(Couple(one, same, changed, tag))
    return tuple(found)


@functools.cache
def held_out_sentences() -> frozenset[str]:
    """All sentences of the dev and test pairs, which no training text may contain."""
    pairs = (*sts_pairs("dev"), *sts_pairs("test"))
    return frozenset(text for pair in pairs for text in (pair.sentence1, pair.sentence2))


class Triplet(NamedTuple):
    """A sentence, one that it entails, and one that it contradicts."""

    anchor: str
    entailed: str
    contradicted: str


def triplets(n: int, seed: int = 0) -> Iterator[Triplet]:
    """Generate `n` distinct triplets, without sentences of the dev and test pairs.

    The entailed sentence has less detail, or a broader word.
    """
    taken, random = held_out_sentences(), Random(f"triplets {seed}")
    seen: set[tuple[str, ...]] = set()
    while len(seen) < n:
        event = draw_event(random)
        if event.negated:  # a negated event does not entail less detail
            continue
        entailed = None if random.random() < 0.6 else generalise(event, random)
        entailed = entailed or shorten(event, random)
        frames = (event, entailed, contradict(event, random))
        texts = tuple(describe(frame, random) for frame in frames)
        if len(set(texts)) == 3 and texts not in seen and not taken & set(texts):
            seen.add(texts)
            yield Triplet(*texts)


def captions(scenes: int, *, of_each: int = 5, seed: int = 0) -> Iterator[tuple[str, ...]]:
    """Generate `of_each` different sentences on each scene, some with less detail than others.

    No two scenes share a sentence, and none is in a dev or test pair.

    Examples:
        >>> from cselab.data.synthetic import captions
        >>> next(captions(1, of_each=2))[1]
        'Five neighbors cleaned two planes.'
    """
    taken, random, done = set(held_out_sentences()), Random(f"captions {seed}"), 0
    while done < scenes:
        event = draw_event(random)
        texts = {
            describe(shorten(event, random) if random.random() < 0.4 else event, random)
            for _ in range(4 * of_each)
        }
        if len(texts) >= of_each and not texts & taken:
            group = tuple(random.sample(sorted(texts), of_each))
            taken |= texts
            done += 1
            yield group


class ConditionalPair(NamedTuple):
    """Two sentences, a condition for a slot, and their similarity under it, 1 to 5."""

    sentence1: str
    sentence2: str
    condition: str
    score: float
    slot: str


@functools.cache
def conditional_pairs(split: str) -> tuple[ConditionalPair, ...]:
    """The 600 rows of "dev", "test" or "train" of synthetic C-STS, equal on every machine.

    In the form of C-STS, https://arxiv.org/abs/2305.15093: two events, and the aspect under which
    they are compared. The ratings follow a rule; no human gave them.

    The splits share no sentence, with each other or with the synthetic STS. Two rows in sequence
    are one pair under two conditions whose ratings differ by 2 or more. Every slot is as often the
    similar one as the dissimilar one, so that a condition by itself says nothing about the rating.
    """
    taken = set(held_out_sentences())
    splits = list(CONDITIONAL_SEEDS)
    for earlier in splits[: splits.index(split)]:
        taken |= {s for row in conditional_pairs(earlier) for s in (row.sentence1, row.sentence2)}
    random = Random(CONDITIONAL_SEEDS[split])
    rows: list[ConditionalPair] = []
    slots = cycle(permutations(CONDITIONS, 2))
    while len(rows) < 2 * CONDITIONAL_PAIRS:
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
