"""Changes to a frame: one at a time for the phenomena, small ones on top, and those that keep or deny what is said."""

from collections.abc import Callable
from dataclasses import replace
from random import Random

from cselab.data.world.frames import Entity, Event, Frame, Market, draw_entity, draw_event, draw_frame
from cselab.data.world.lexicon import lexicon


def broader(frame: Event, random: Random) -> Frame | None:
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


def modifier(frame: Event, random: Random) -> Frame:
    """An adjective, a place or a time more or less."""
    words = lexicon()
    slot = random.choice(["agent", "patient", "place", "time"] if frame.patient else ["agent", "place", "time"])
    if slot in ("place", "time"):
        table = words.places if slot == "place" else words.times
        return replace(frame, **{slot: None if getattr(frame, slot) else random.choice(tuple(table))})
    entity = getattr(frame, slot)
    adjective = None if entity.adjective else random.choice(words.adjectives_of[words.nouns[entity.noun].kind])
    return replace(frame, **{slot: replace(entity, adjective=adjective)})


def number(frame: Frame, random: Random) -> Frame:
    """Another number of the agent or the patient, or of per cent."""
    if isinstance(frame, Market):
        return replace(frame, amount=random.choice([n for n in lexicon().amounts if n != frame.amount]))
    slot = random.choice(("agent", "patient") if frame.patient else ("agent",))
    entity = getattr(frame, slot)
    return replace(
        frame, **{slot: replace(entity, number=random.choice([n for n in (1, 2, 3, 4, 5) if n != entity.number]))}
    )


def opposite(frame: Frame, random: Random) -> Frame | None:
    """The opposite action or adjective, or a price that moves the other way; None where nothing has an opposite."""
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


def swap(frame: Event, random: Random) -> Frame | None:
    """Who does it to whom, turned round; only where both can do it."""
    words = lexicon()
    if frame.patient is None or words.nouns[frame.patient.noun].kind not in words.verbs[frame.verb].agents:
        return None
    if words.nouns[frame.agent.noun].kind not in words.verbs[frame.verb].patients:
        return None
    return replace(frame, agent=frame.patient, patient=frame.agent)


def topic(frame: Event, random: Random) -> Frame:
    """The same people, thing or place in another action."""
    other = draw_event(random)
    verb = lexicon().verbs[other.verb]
    kind = lexicon().nouns[frame.agent.noun].kind
    agent = frame.agent if kind in verb.agents else other.agent
    return replace(other, agent=Entity(agent.noun, other.agent.number), place=frame.place)


def further(frame: Event, random: Random) -> Event:
    """A small change beside the main one: a modifier, a number, or another noun in one slot."""
    if random.random() < 0.6:
        return random.choice((modifier, number))(frame, random)
    verb = lexicon().verbs[frame.verb]
    slot = random.choice(("agent", "patient") if frame.patient else ("agent",))
    return replace(frame, **{slot: draw_entity(random, verb.agents if slot == "agent" else verb.patients)})


def shorter(frame: Event, random: Random) -> Event:
    """The same event with less said of it: an adjective, the place or the time left out; what remains still holds."""
    choices: list[Event] = []
    for slot in ("agent", "patient"):
        entity = getattr(frame, slot)
        if entity and entity.adjective:
            choices.append(replace(frame, **{slot: replace(entity, adjective=None)}))
    choices += [replace(frame, **{slot: None}) for slot in ("place", "time") if getattr(frame, slot)]
    return random.choice(choices) if choices else frame


def denied(frame: Event, random: Random) -> Event:
    """An event that cannot hold together with `frame`: its negation or an opposite."""
    other = opposite(frame, random) if random.random() < 0.5 else None
    return other or replace(frame, negated=not frame.negated)


CHANGES: dict[str, Callable[[Event, Random], Frame | None]] = {
    "synonym": lambda frame, random: frame,
    "paraphrase": lambda frame, random: frame,
    "hypernym": broader,
    "modifier": modifier,
    "number": number,
    "negation": lambda frame, random: replace(frame, negated=not frame.negated),
    "antonym": opposite,
    "role_swap": swap,
    "topic": topic,
    "unrelated": lambda frame, random: draw_frame(random),
}
