"""What a sentence of the world means: a frame with slots of concepts, drawn at random."""

from dataclasses import dataclass
from random import Random

from cselab.data.world.lexicon import lexicon


@dataclass(frozen=True)
class Entity:
    """`number` of a noun, perhaps with an adjective: (3, "dog", "small") is three small dogs."""

    noun: str
    number: int = 1
    adjective: str | None = None


@dataclass(frozen=True)
class Event:
    """Somebody does something, perhaps to somebody, somewhere, at some time; or does not."""

    verb: str
    agent: Entity
    patient: Entity | None = None
    place: str | None = None
    time: str | None = None
    negated: bool = False


@dataclass(frozen=True)
class Market:
    """The price of a good moved by an amount (per cent), at some time."""

    good: str
    move: str
    amount: int
    time: str | None = None


@dataclass(frozen=True)
class Definition:
    """What kind of thing a noun is."""

    noun: str


Frame = Event | Market | Definition

WEEKDAYS = ("monday", "tuesday", "friday", "sunday", "yesterday")


def draw_entity(random: Random, kinds: tuple[str, ...]) -> Entity:
    """A noun of one of these kinds, mostly one of it, in four of ten cases with an adjective."""
    words = lexicon()
    noun = random.choice(words.by_kind[random.choice(kinds)])
    number = random.choice((1, 1, 1, 1, 1, 2, 2, 3, 4, 5))
    adjective = random.choice(words.adjectives_of[words.nouns[noun].kind]) if random.random() < 0.4 else None
    return Entity(noun, number, adjective)


def draw_event(random: Random) -> Event:
    """An action with people or things that fit it; nobody does it to their like."""
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
    """The price of a good, up or down."""
    words = lexicon()
    time = random.choice(WEEKDAYS) if random.random() < 0.6 else None
    return Market(
        random.choice(tuple(words.goods)), random.choice(tuple(words.moves)), random.choice(words.amounts), time
    )


def draw_frame(random: Random) -> Frame:
    """Mostly events, some news of markets, a few definitions."""
    share = random.random()
    if share < 0.95:
        return draw_event(random)
    if share < 0.998:
        return draw_market(random)
    words = lexicon()
    return Definition(random.choice([name for name, noun in words.nouns.items() if noun.parent]))
