"""Realise a meaning as an English sentence; synonyms, voice, tense and order vary at random."""

from random import Random

from cselab.data.synthetic.frames import Definition, Entity, Event, Frame
from cselab.data.synthetic.lexicon import lexicon


class _Plain(Random):
    """Draws that always choose the most common word, active voice and present tense."""

    def choice(self, seq):
        return seq[0]

    def random(self) -> float:
        return 1.0


PLAIN = _Plain()


def describe(frame: Frame, random: Random, *, plain: bool = False) -> str:
    """A random sentence with the meaning `frame`; `random` chooses words, voice, tense and order.

    `plain`: the most common words, active voice, and place and time at the end.

    Examples:
        >>> from random import Random
        >>> from cselab.data.synthetic import describe, draw_frame
        >>> random = Random(0)
        >>> frame = draw_frame(random)
        >>> describe(frame, random), describe(frame, random)
        ('A man is dancing on the farm.', 'On the farm, a gentleman is dancing.')
    """
    random = PLAIN if plain else random
    if isinstance(frame, Event):
        return _event(frame, random)
    words = lexicon()
    if isinstance(frame, Definition):
        noun = words.nouns[frame.noun]
        assert noun.parent is not None  # a definition names the broader concept
        parent = words.nouns[noun.parent]
        phrase = random.choice(
            ("{} is a kind of {}.", "{} is a type of {}.", "{} is a sort of {}.")
        )
        narrow, broad = random.choice(noun.words)[0], random.choice(parent.words)[0]
        return _sentence(phrase.format(_article(narrow), broad))
    good = random.choice(words.goods[frame.good].words)
    move = random.choice(words.moves[frame.move].words)
    when = f" {random.choice(words.times[frame.time].words)}" if frame.time else ""
    amount = f"{frame.amount} percent"
    phrases = (f"the price of {good} {move} by {amount}", f"{good} prices {move} {amount}")
    phrase = random.choice(phrases)
    if when and random.random() < 0.3:
        return _sentence(f"{when.strip()} {phrase}.")
    return _sentence(f"{phrase}{when}.")


def nominalise(frame: Event, random: Random) -> str | None:
    """A sentence with the action as a noun: "The theft of a car by a man took place on Monday."

    None where the lexicon has no such noun.
    """
    noun = lexicon().verbs[frame.verb].noun
    if noun is None:
        return None
    took_place = random.choice(
        ("did not take place", "did not happen") if frame.negated else ("took place", "happened")
    )
    doer = _entity(frame.agent, random)
    parties = f"{_entity(frame.patient, random)} by {doer}" if frame.patient else doer
    adjuncts = [random.choice(words) for words in _adjuncts(frame)]
    return _sentence(" ".join([f"the {noun} {parties} {took_place}", *adjuncts]) + ".")


def _event(frame: Event, random: Random) -> str:
    base, _, past, participle, gerund = random.choice(lexicon().verbs[frame.verb].words)
    subject, passive = frame.agent, False
    if frame.patient is not None and random.random() < 0.25:
        subject, passive = frame.patient, True
    in_past = frame.time is not None or random.random() < 0.35
    singular = subject.number == 1
    be = ("was" if singular else "were") if in_past else ("is" if singular else "are")
    not_ = " not" if frame.negated else ""
    if passive:
        being = "" if in_past else "being "
        verb = f"{be}{not_} {being}{participle} by {_entity(frame.agent, random)}"
    else:
        past_tense = f"did not {base}" if frame.negated else past
        verb = past_tense if in_past else f"{be}{not_} {gerund}"
        if frame.patient is not None:
            verb = f"{verb} {_entity(frame.patient, random)}"
    adjuncts = [random.choice(words) for words in _adjuncts(frame)]
    clause = f"{_entity(subject, random)} {verb}"
    if adjuncts and random.random() < 0.2:
        clause = f"{adjuncts.pop()}, {clause}"
    return _sentence(" ".join([clause, *adjuncts]) + ".")


def _adjuncts(frame: Event) -> list[tuple[str, ...]]:
    """Synonyms for the place and the time, as far as the event has them."""
    slots = ((frame.place, lexicon().places), (frame.time, lexicon().times))
    return [table[name].words for name, table in slots if name is not None]


def _entity(entity: Entity, random: Random) -> str:
    words = lexicon()
    singular, plural = random.choice(words.nouns[entity.noun].words)
    phrase = singular if entity.number == 1 else plural
    if entity.adjective:
        phrase = f"{random.choice(words.adjectives[entity.adjective].words)} {phrase}"
    return _article(phrase) if entity.number == 1 else f"{words.numbers[entity.number]} {phrase}"


def _article(phrase: str) -> str:
    return f"{'an' if phrase[0] in 'aeiou' and not phrase.startswith('uni') else 'a'} {phrase}"


def _sentence(text: str) -> str:
    return text[0].upper() + text[1:]
