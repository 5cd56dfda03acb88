"""Similarity of two meanings, 0 to 5, by a rule in the spirit of the STS scale.

5: same meaning; 4: a detail differs; 3: something important differs; 2: some parts are shared; 1:
same topic; 0: nothing in common.

Events are compared slot by slot: action (weight 3), agent (2), patient (2), place (1), time (1).
The score is the weighted mean over the slots that at least one event has, times 0.6 + 0.4 times the
smaller similarity of agent and patient.

- A slot that only one event has counts one half.
- Swapped agent and patient count two fifths each.
- Concepts are compared by their distance in the taxonomy: same 1, parent and child 0.8, grandparent
  0.7, siblings 0.4, same kind 0.1; opposite actions 0.2.
- Another number costs a fifth of the slot; an adjective that one leaves out a twentieth, another
  adjective a quarter, the opposite adjective two fifths.
- Unrelated actions limit the score to 1.5.
- The score is halved if exactly one event is negated.
"""

from cselab.data.synthetic.frames import Definition, Entity, Event, Frame, Market
from cselab.data.synthetic.lexicon import Noun, Verb, Word, lexicon

WEIGHTS = {"verb": 3.0, "agent": 2.0, "patient": 2.0, "place": 1.0, "time": 1.0}
OTHER_ACTION_AT_MOST = 1.5
SWAPPED = 0.4


def similarity(a: Frame, b: Frame) -> float:
    """Gold rating of a pair, 0 to 5, symmetric; 5 for equal frames, 0 for different frame types.

    Examples:
        >>> from dataclasses import replace
        >>> from random import Random
        >>> from cselab.data.synthetic import draw_frame, similarity
        >>> event = draw_frame(Random(0))  # a man dances on a farm
        >>> similarity(event, event), similarity(event, replace(event, negated=True))
        (5.0, 2.5)
    """
    if isinstance(a, Event) and isinstance(b, Event):
        return _events(a, b)
    if isinstance(a, Market) and isinstance(b, Market):
        return _markets(a, b)
    if isinstance(a, Definition) and isinstance(b, Definition):
        return 5 * _concepts(a.noun, b.noun, lexicon().nouns)
    return 0.0


def slot_similarities(a: Event, b: Event) -> dict[str, float]:
    """Similarity of action, agent, patient, place and time of two events, 0 to 1.

    One half where only one event has the slot; without the slots that neither has.
    """
    words = lexicon()
    similarities = {
        "verb": _concepts(a.verb, b.verb, words.verbs),
        "agent": _entities(a.agent, b.agent),
        "patient": _optional(a.patient, b.patient, _entities),
        "place": _optional(a.place, b.place, lambda p, q: _concepts(p, q, words.places)),
        "time": _optional(a.time, b.time, lambda p, q: _concepts(p, q, words.times)),
    }
    return {slot: value for slot, value in similarities.items() if value is not None}


def _events(a: Event, b: Event) -> float:
    parts = slot_similarities(a, b)
    if a.patient and b.patient:
        crosswise = _entities(a.agent, b.patient) + _entities(a.patient, b.agent)
        if crosswise > parts["agent"] + parts["patient"]:
            parts["agent"] = parts["patient"] = SWAPPED * crosswise / 2
    score = _mean([(WEIGHTS[slot], value) for slot, value in parts.items()])
    score *= 0.6 + 0.4 * min(parts["agent"], parts.get("patient", 1.0))
    if parts["verb"] == 0:
        score = min(score, OTHER_ACTION_AT_MOST)
    return score / 2 if a.negated != b.negated else score


def _markets(a: Market, b: Market) -> float:
    good = 1.0 if a.good == b.good else 0.3
    move = 1.0 if a.move == b.move else 0.2
    amount = 1.0 if a.amount == b.amount else 0.5
    time = _optional(a.time, b.time, lambda p, q: _concepts(p, q, lexicon().times))
    times = [] if time is None else [(1.0, time)]
    score = _mean([(3.0, good), (3.0, move), (1.5, amount), *times])
    return score * (0.6 + 0.4 * min(good, move))


def _mean(parts: list[tuple[float, float]]) -> float:
    """Five times the weighted mean of (weight, similarity) pairs."""
    return 5 * sum(weight * value for weight, value in parts) / sum(weight for weight, _ in parts)


def _optional(a, b, compare) -> float | None:
    """Similarity of two slots that may be empty: None if both are, one half if one is."""
    if a is None or b is None:
        return None if a is b else 0.5
    return compare(a, b)


def _entities(a: Entity, b: Entity) -> float:
    same = _concepts(a.noun, b.noun, lexicon().nouns)
    number = 1.0 if a.number == b.number else 0.8
    if a.adjective == b.adjective:
        adjective = 1.0
    elif a.adjective is None or b.adjective is None:
        adjective = 0.95
    else:
        adjective = 0.6 if lexicon().adjectives[a.adjective].opposite == b.adjective else 0.75
    return same * number * adjective


def _concepts(a: str, b: str, table: dict[str, Noun] | dict[str, Verb] | dict[str, Word]) -> float:
    if a == b:
        return 1.0
    up_a, up_b = _ancestors(a, table), _ancestors(b, table)
    if b in up_a or a in up_b:
        steps = up_a.index(b) if b in up_a else up_b.index(a)
        return 0.8 if steps == 0 else 0.7
    if up_a and up_b and up_a[0] == up_b[0]:
        return 0.4
    if getattr(table[a], "opposite", None) == b:
        return 0.2
    kinds = {getattr(table[a], "kind", None), getattr(table[b], "kind", None)}
    return 0.1 if len(kinds) == 1 and None not in kinds else 0.0


def _ancestors(name: str, table) -> list[str]:
    """The broader concepts of a concept: parent, grandparent, …"""
    chain = []
    while (name := table[name].parent) is not None:
        chain.append(name)
    return chain
