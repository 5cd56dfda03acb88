"""Meanings of synthetic sentences: frames with slots of concepts, drawn at random."""

from dataclasses import dataclass, replace
from random import Random
from typing import Any, TypeVar, final

from cselab.data.synthetic.lexicon import lexicon


@dataclass(frozen=True)
class Entity:
    """`number` of a noun, perhaps with an adjective: (3, "dog", "small") is three small dogs."""

    noun: str
    number: int = 1
    adjective: str | None = None


@final
@dataclass(frozen=True)
class Event:
    """An action with its agent, and optionally a patient, a place and a time; perhaps negated."""

    verb: str
    agent: Entity
    patient: Entity | None = None
    place: str | None = None
    time: str | None = None
    negated: bool = False

    @property
    def entities(self) -> tuple[str, ...]:
        """Its slots of entities: the agent, and the patient if it has one."""
        return ("agent", "patient") if self.patient else ("agent",)

    def is_possible(self) -> bool:
        """Whether the action fits who acts and what it is done to."""
        words = lexicon()
        verb = words.verbs[self.verb]
        return (
            self.patient is not None
            and words.nouns[self.agent.noun].kind in verb.agents
            and words.nouns[self.patient.noun].kind in verb.patients
        )


@final
@dataclass(frozen=True)
class Market:
    """A price that moves by an amount (per cent), optionally with a time."""

    good: str
    move: str
    amount: int
    time: str | None = None


@dataclass(frozen=True)
class Definition:
    """A statement of what kind of thing a noun is."""

    noun: str


Frame = Event | Market | Definition

Changeable = TypeVar("Changeable", Event, Market)
"""A meaning that can be changed: a changed event is an event, a changed price a price."""

WEEKDAYS = ("monday", "tuesday", "friday", "sunday", "yesterday")


def with_slot(event: Event, slot: str, part: Any) -> Event:
    """The event with another part in a slot: an entity, a word or nothing."""
    return replace(event, **{slot: part})


def draw_entity(random: Random, kinds: tuple[str, ...]) -> Entity:
    """A random noun of one of these kinds, often singular; four of ten have an adjective."""
    words = lexicon()
    noun = random.choice(words.by_kind[random.choice(kinds)])
    number = random.choice((1, 1, 1, 1, 1, 2, 2, 3, 4, 5))
    adjectives = words.adjectives_of[words.nouns[noun].kind]
    return Entity(noun, number, random.choice(adjectives) if random.random() < 0.4 else None)


def draw_event(random: Random) -> Event:
    """A random action with an agent and a patient that fit it and differ."""
    words = lexicon()
    verb = words.verbs[random.choice(tuple(words.verbs))]
    agent = draw_entity(random, verb.agents)
    patient = draw_entity(random, verb.patients) if verb.patients else None
    while patient is not None and patient.noun == agent.noun:
        patient = draw_entity(random, verb.patients)
    place = random.choice(tuple(words.places)) if random.random() < 0.6 else None
    time = random.choice(tuple(words.times)) if random.random() < 0.3 else None
    return Event(verb.name, agent, patient, place, time, random.random() < 0.06)


def draw_market(random: Random) -> Market:
    """A random change of the price of a good."""
    words = lexicon()
    time = random.choice(WEEKDAYS) if random.random() < 0.6 else None
    good, move = random.choice(tuple(words.goods)), random.choice(tuple(words.moves))
    return Market(good, move, random.choice(words.amounts), time)


def draw_frame(random: Random) -> Frame:
    """A random meaning: mostly events, some market news, a few definitions."""
    share = random.random()
    if share < 0.95:
        return draw_event(random)
    if share < 0.998:
        return draw_market(random)
    words = lexicon()
    return Definition(random.choice([name for name, noun in words.nouns.items() if noun.parent]))
