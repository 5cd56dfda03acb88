"""Changes to the meaning of a sentence: one per phenomenon, details, entailment, contradiction."""

from collections.abc import Callable
from dataclasses import replace
from random import Random

from cselab.data.synthetic.frames import (
    Entity,
    Event,
    Frame,
    Market,
    draw_entity,
    draw_event,
    draw_frame,
)
from cselab.data.synthetic.lexicon import lexicon


def generalise(frame: Event, random: Random) -> Frame | None:
    """Replace agent, patient or action by a broader word (one of them); None if none is known."""
    words = lexicon()
    entities = {"agent": frame.agent, "patient": frame.patient}
    slots = [slot for slot, noun in entities.items() if noun and words.nouns[noun.noun].parent]
    slots += ["verb"] if words.verbs[frame.verb].parent else []
    if not slots:
        return None
    slot = random.choice(slots)
    if slot == "verb":
        return replace(frame, verb=words.verbs[frame.verb].parent)
    entity = getattr(frame, slot)
    return replace(frame, **{slot: replace(entity, noun=words.nouns[entity.noun].parent)})


def change_modifier(frame: Event, random: Random) -> Frame:
    """Add or remove an adjective, a place or a time."""
    words = lexicon()
    slots = ["agent", "patient", "place", "time"] if frame.patient else ["agent", "place", "time"]
    slot = random.choice(slots)
    value = getattr(frame, slot)
    if slot in ("place", "time"):
        table = words.places if slot == "place" else words.times
        return replace(frame, **{slot: None if value else random.choice(tuple(table))})
    adjective = None
    if not value.adjective:
        adjective = random.choice(words.adjectives_of[words.nouns[value.noun].kind])
    return replace(frame, **{slot: replace(value, adjective=adjective)})


def change_number(frame: Frame, random: Random) -> Frame:
    """Change the number of the agent or the patient, or the per cent of a price."""
    if isinstance(frame, Market):
        amounts = [n for n in lexicon().amounts if n != frame.amount]
        return replace(frame, amount=random.choice(amounts))
    slot = random.choice(("agent", "patient") if frame.patient else ("agent",))
    entity = getattr(frame, slot)
    numbers = [n for n in (1, 2, 3, 4, 5) if n != entity.number]
    return replace(frame, **{slot: replace(entity, number=random.choice(numbers))})


def reverse(frame: Frame, random: Random) -> Frame | None:
    """Take the opposite action or adjective, or move a price the other way.

    None if nothing in the frame has an opposite.
    """
    words = lexicon()
    if isinstance(frame, Market):
        return replace(frame, move=words.moves[frame.move].opposite)
    choices: list[Frame] = []
    if words.verbs[frame.verb].opposite:
        choices.append(replace(frame, verb=words.verbs[frame.verb].opposite))
    for slot in ("agent", "patient"):
        entity = getattr(frame, slot)
        if entity and entity.adjective and words.adjectives[entity.adjective].opposite:
            opposite = words.adjectives[entity.adjective].opposite
            if words.nouns[entity.noun].kind in words.adjectives[opposite].kinds:
                choices.append(replace(frame, **{slot: replace(entity, adjective=opposite)}))
    return random.choice(choices) if choices else None


def swap_roles(frame: Event, random: Random) -> Frame | None:
    """Exchange agent and patient; None unless each can take the other's role."""
    words = lexicon()
    verb = words.verbs[frame.verb]
    if frame.patient is None or words.nouns[frame.patient.noun].kind not in verb.agents:
        return None
    if words.nouns[frame.agent.noun].kind not in verb.patients:
        return None
    return replace(frame, agent=frame.patient, patient=frame.agent)


def change_action(frame: Event, random: Random) -> Frame:
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
    verb = lexicon().verbs[frame.verb]
    slot = random.choice(("agent", "patient") if frame.patient else ("agent",))
    kinds = verb.agents if slot == "agent" else verb.patients
    return replace(frame, **{slot: draw_entity(random, kinds)})


def shorten(frame: Event, random: Random) -> Event:
    """Remove an adjective, the place or the time; the event entails the result."""
    choices: list[Event] = []
    for slot in ("agent", "patient"):
        entity = getattr(frame, slot)
        if entity and entity.adjective:
            choices.append(replace(frame, **{slot: replace(entity, adjective=None)}))
    choices += [
        replace(frame, **{slot: None}) for slot in ("place", "time") if getattr(frame, slot)
    ]
    return random.choice(choices) if choices else frame


def contradict(frame: Event, random: Random) -> Event:
    """An event that contradicts `frame`: its negation or an opposite."""
    opposite = reverse(frame, random) if random.random() < 0.5 else None
    return opposite or replace(frame, negated=not frame.negated)


CHANGES: dict[str, Callable[[Event, Random], Frame | None]] = {
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
