"""Changes to the meaning of a sentence: one per phenomenon, details, entailment, contradiction."""

from collections.abc import Callable
from dataclasses import replace
from random import Random
from typing import Any

from cselab.data.synthetic.frames import (
    Changeable,
    Entity,
    Event,
    Frame,
    Market,
    draw_entity,
    draw_event,
    draw_frame,
    with_slot,
)
from cselab.data.synthetic.lexicon import lexicon


def generalise(frame: Event, random: Random) -> Event | None:
    """Replace agent, patient or action by a broader word (one of them); None if none is known."""
    words = lexicon()
    choices: list[Event] = []
    for slot in frame.entities:
        entity = getattr(frame, slot)
        if parent := words.nouns[entity.noun].parent:
            choices.append(with_slot(frame, slot, replace(entity, noun=parent)))
    if parent := words.verbs[frame.verb].parent:
        choices.append(replace(frame, verb=parent))
    return random.choice(choices) if choices else None


def change_modifier(frame: Event, random: Random) -> Event:
    """Add or remove an adjective, a place or a time."""
    words = lexicon()
    slot = random.choice((*frame.entities, "place", "time"))
    value = getattr(frame, slot)
    if slot in ("place", "time"):
        table = words.places if slot == "place" else words.times
        return with_slot(frame, slot, None if value else random.choice(tuple(table)))
    adjective = None
    if not value.adjective:
        adjective = random.choice(words.adjectives_of[words.nouns[value.noun].kind])
    return with_slot(frame, slot, replace(value, adjective=adjective))


def change_number(frame: Changeable, random: Random) -> Changeable:
    """Change the number of the agent or the patient, or the per cent of a price."""
    if isinstance(frame, Market):
        amounts = [n for n in lexicon().amounts if n != frame.amount]
        return replace(frame, amount=random.choice(amounts))
    slot = random.choice(frame.entities)
    entity = getattr(frame, slot)
    numbers = [n for n in (1, 2, 3, 4, 5) if n != entity.number]
    return with_slot(frame, slot, replace(entity, number=random.choice(numbers)))


def reverse(frame: Changeable, random: Random) -> Changeable | None:
    """Take the opposite action or adjective, or move a price the other way; None without one."""
    words = lexicon()
    if isinstance(frame, Market):
        opposite = words.moves[frame.move].opposite
        return replace(frame, move=opposite) if opposite else None
    choices: list[Event] = []
    if opposite := words.verbs[frame.verb].opposite:
        choices.append(replace(frame, verb=opposite))
    for slot in frame.entities:
        entity = getattr(frame, slot)
        opposite = entity.adjective and words.adjectives[entity.adjective].opposite
        if opposite and words.nouns[entity.noun].kind in words.adjectives[opposite].kinds:
            choices.append(with_slot(frame, slot, replace(entity, adjective=opposite)))
    return random.choice(choices) if choices else None


def swap_roles(frame: Event, random: Random) -> Event | None:
    """Exchange agent and patient; None unless each can take the other's role."""
    if frame.patient is None:
        return None
    swapped = replace(frame, agent=frame.patient, patient=frame.agent)
    return swapped if swapped.is_possible() else None


def change_action(frame: Event, random: Random) -> Event:
    """Another action with the same agent and place: the same topic."""
    other = draw_event(random)
    verb = lexicon().verbs[other.verb]
    kind = lexicon().nouns[frame.agent.noun].kind
    agent = frame.agent if kind in verb.agents else other.agent
    return replace(other, agent=Entity(agent.noun, other.agent.number), place=frame.place)


def change_detail(frame: Event, random: Random) -> Event:
    """A small change besides the main one: a modifier, a number, or another noun in one slot."""
    if random.random() < 0.6:
        return random.choice((change_modifier, change_number))(frame, random)
    verb, slot = lexicon().verbs[frame.verb], random.choice(frame.entities)
    kinds = verb.agents if slot == "agent" else verb.patients
    return with_slot(frame, slot, draw_entity(random, kinds))


def shorten(frame: Event, random: Random) -> Event:
    """Remove an adjective, the place or the time; the event entails the result."""
    choices = [
        with_slot(frame, slot, replace(entity, adjective=None))
        for slot in frame.entities
        if (entity := getattr(frame, slot)).adjective
    ]
    choices += [with_slot(frame, slot, None) for slot in ("place", "time") if getattr(frame, slot)]
    return random.choice(choices) if choices else frame


def contradict(frame: Event, random: Random) -> Event:
    """An event that contradicts `frame`: its negation or an opposite."""
    opposite = reverse(frame, random) if random.random() < 0.5 else None
    return opposite or replace(frame, negated=not frame.negated)


# of an event; "number" and "antonym" also of a price
CHANGES: dict[str, Callable[[Any, Random], Frame | None]] = {
    "synonym": lambda frame, random: frame,
    "paraphrase": lambda frame, random: frame,
    "hypernym": generalise,
    "modifier": change_modifier,
    "number": change_number,
    "negation": lambda frame, random: replace(frame, negated=not frame.negated),
    "antonym": reverse,
    "role_swap": swap_roles,
    "topic": change_action,
    "unrelated": lambda frame, random: draw_frame(random),
}
