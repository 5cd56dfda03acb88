"""STS pairs of the world: a frame, one change to it, and the rating that the rule gives; tagged with the change."""

import functools
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from random import Random

from cselab.data.world.frames import Entity, Event, Frame, Market, draw_entity, draw_event, draw_frame, draw_market
from cselab.data.world.lexicon import lexicon
from cselab.data.world.realise import describe
from cselab.data.world.similarity import similarity

PAIRS = 1500
AT_MOST = (220, 100, 75, 55, 55)
"""Pairs of one tag in each fifth of the scale, so that no tag is a rating and every fifth has the same number."""
SEEDS = {"dev": 1_000_001, "test": 1_000_002}


@dataclass(frozen=True)
class StsPair:
    """Two sentences, their rating 0 to 5, and what was changed between them."""

    sentence1: str
    sentence2: str
    score: float
    tag: str


def _broader(frame: Event, random: Random) -> Frame | None:
    """Agent, patient or action by a broader word; never both ways at once."""
    words = lexicon()
    slots = [s for s in ("agent", "patient") if getattr(frame, s) and words.nouns[getattr(frame, s).noun].parent]
    slots += ["verb"] if words.verbs[frame.verb].parent else []
    if not slots:
        return None
    slot = random.choice(slots)
    if slot == "verb":
        return replace(frame, verb=words.verbs[frame.verb].parent)
    entity = getattr(frame, slot)
    return replace(frame, **{slot: replace(entity, noun=words.nouns[entity.noun].parent)})


def _modifier(frame: Event, random: Random) -> Frame:
    """An adjective, a place or a time more or less."""
    words = lexicon()
    slot = random.choice(["agent", "patient", "place", "time"] if frame.patient else ["agent", "place", "time"])
    if slot in ("place", "time"):
        table = words.places if slot == "place" else words.times
        return replace(frame, **{slot: None if getattr(frame, slot) else random.choice(tuple(table))})
    entity = getattr(frame, slot)
    adjective = None if entity.adjective else random.choice(words.adjectives_of[words.nouns[entity.noun].kind])
    return replace(frame, **{slot: replace(entity, adjective=adjective)})


def _number(frame: Frame, random: Random) -> Frame:
    if isinstance(frame, Market):
        return replace(frame, amount=random.choice([n for n in lexicon().amounts if n != frame.amount]))
    slot = random.choice(("agent", "patient") if frame.patient else ("agent",))
    entity = getattr(frame, slot)
    return replace(
        frame, **{slot: replace(entity, number=random.choice([n for n in (1, 2, 3, 4, 5) if n != entity.number]))}
    )


def _opposite(frame: Frame, random: Random) -> Frame | None:
    words = lexicon()
    if isinstance(frame, Market):
        return replace(frame, move=words.moves[frame.move].opposite)
    choices: list[Frame] = []
    if words.verbs[frame.verb].opposite:
        choices.append(replace(frame, verb=words.verbs[frame.verb].opposite))
    for slot in ("agent", "patient"):
        entity = getattr(frame, slot)
        if entity and entity.adjective and words.adjectives[entity.adjective].opposite:
            other = words.adjectives[entity.adjective].opposite
            if words.nouns[entity.noun].kind in words.adjectives[other].kinds:
                choices.append(replace(frame, **{slot: replace(entity, adjective=other)}))
    return random.choice(choices) if choices else None


def _swap(frame: Event, random: Random) -> Frame | None:
    """Who does it to whom, turned round; only where both can do it."""
    words = lexicon()
    if frame.patient is None or words.nouns[frame.patient.noun].kind not in words.verbs[frame.verb].agents:
        return None
    if words.nouns[frame.agent.noun].kind not in words.verbs[frame.verb].patients:
        return None
    return replace(frame, agent=frame.patient, patient=frame.agent)


def _topic(frame: Event, random: Random) -> Frame:
    """The same people, thing or place in another action."""
    other = draw_event(random)
    verb = lexicon().verbs[other.verb]
    kind = lexicon().nouns[frame.agent.noun].kind
    agent = frame.agent if kind in verb.agents else other.agent
    return replace(other, agent=Entity(agent.noun, other.agent.number), place=frame.place)


CHANGES: dict[str, Callable[[Event, Random], Frame | None]] = {
    "synonym": lambda frame, random: frame,
    "paraphrase": lambda frame, random: frame,
    "hypernym": _broader,
    "modifier": _modifier,
    "number": _number,
    "negation": lambda frame, random: replace(frame, negated=not frame.negated),
    "antonym": _opposite,
    "role_swap": _swap,
    "topic": _topic,
    "unrelated": lambda frame, random: draw_frame(random),
}


@functools.cache
def sts_pairs(split: str) -> tuple[StsPair, ...]:
    """The pairs of "dev" or "test": 1,500 each, the same on every machine; no sentence is in both."""
    taken = (
        {text for pair in sts_pairs("dev") for text in (pair.sentence1, pair.sentence2)} if split == "test" else set()
    )
    pairs: list[StsPair] = []
    fifths, tags = Counter(), Counter()
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
    while True:
        for tag, change in CHANGES.items():
            first: Frame = (
                draw_market(random) if tag in ("number", "antonym") and random.random() < 0.1 else draw_event(random)
            )
            second = change(first, random)
            if second is None:
                continue
            if isinstance(second, Event) and isinstance(first, Event) and tag != "unrelated":
                for _ in range(random.choice((0, 0, 1, 2))):  # further differences, so that a tag is not a rating
                    second = _further(second, random)
            score = round(similarity(first, second), 2)
            one = describe(first, random, plain=tag == "synonym")
            two = describe(second, random)
            if random.random() < 0.5:
                one, two = two, one
            yield StsPair(one, two, score, tag)


def _further(frame: Event, random: Random) -> Event:
    """A small change beside the main one: a modifier, a number, or another noun in one slot."""
    if random.random() < 0.6:
        return random.choice((_modifier, _number))(frame, random)
    verb = lexicon().verbs[frame.verb]
    slot = random.choice(("agent", "patient") if frame.patient else ("agent",))
    return replace(frame, **{slot: draw_entity(random, verb.agents if slot == "agent" else verb.patients)})
