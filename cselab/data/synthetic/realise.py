"""Realise a meaning as an English sentence; synonyms, voice, tense and order vary at random."""

from random import Random

from cselab.data.synthetic.frames import Definition, Entity, Event, Frame
from cselab.data.synthetic.lexicon import lexicon


def describe(frame: Frame, random: Random, *, plain: bool = False) -> str:
    """A random sentence with the meaning `frame`.

    Args:
        frame: A meaning, as from `draw_frame`.
        random: Chooses synonyms, voice, tense and order.
        plain: Usual words, active voice, and place and time at the end.

    Examples:
        >>> from random import Random
        >>> from cselab.data.synthetic import describe, draw_frame
        >>> random = Random(0)
        >>> frame = draw_frame(random)
        >>> describe(frame, random), describe(frame, random)
        ('A man is dancing on the farm.', 'On the farm, a gentleman is dancing.')
    """
    if isinstance(frame, Event):
        return _event(frame, random, plain)
    words = lexicon()

    def pick(options):
        return options[0] if plain else random.choice(options)

    if isinstance(frame, Definition):
        noun = words.nouns[frame.noun]
        assert noun.parent is not None  # a definition names the broader concept
        parent = words.nouns[noun.parent]
        phrase = pick(("{} is a kind of {}.", "{} is a type of {}.", "{} is a sort of {}."))
        return _sentence(phrase.format(_article(pick(noun.words)[0]), pick(parent.words)[0]))
    good, move = pick(words.goods[frame.good].words), pick(words.moves[frame.move].words)
    when = f" {pick(words.times[frame.time].words)}" if frame.time else ""
    phrase = pick(
        (
            "the price of {good} {move} by {n} percent{when}.",
            "{good} prices {move} {n} percent{when}.",
        )
    )
    if when and not plain and random.random() < 0.3:
        phrase, when = f"{when.strip()} {phrase}", ""
    return _sentence(phrase.format(good=good, move=move, n=frame.amount, when=when))


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
    doer = _entity(frame.agent, random, False)
    parties = f"{_entity(frame.patient, random, False)} by {doer}" if frame.patient else doer
    adjuncts = [random.choice(words) for words in _adjuncts(frame)]
    return _sentence(" ".join([f"the {noun} {parties} {took_place}", *adjuncts]) + ".")


def _event(frame: Event, random: Random, plain: bool) -> str:
    words = lexicon()
    base, _, past, participle, gerund = (
        words.verbs[frame.verb].words[0] if plain else random.choice(words.verbs[frame.verb].words)
    )
    subject, passive = frame.agent, False
    if frame.patient is not None and not plain and random.random() < 0.25:
        subject, passive = frame.patient, True
    in_past = frame.time is not None or (not plain and random.random() < 0.35)
    singular = subject.number == 1
    be = ("was" if singular else "were") if in_past else ("is" if singular else "are")
    not_ = " not" if frame.negated else ""
    if passive:
        verb = (
            f"{be}{not_} {'' if in_past else 'being '}{participle} by "
            f"{_entity(frame.agent, random, plain)}"
        )
    else:
        past_tense = f"did not {base}" if frame.negated else past
        verb = past_tense if in_past else f"{be}{not_} {gerund}"
        if frame.patient is not None:
            verb = f"{verb} {_entity(frame.patient, random, plain)}"
    adjuncts = [options[0] if plain else random.choice(options) for options in _adjuncts(frame)]
    clause = f"{_entity(subject, random, plain)} {verb}"
    if adjuncts and not plain and random.random() < 0.2:
        front = adjuncts.pop()
        return _sentence(" ".join([f"{front},", clause, *adjuncts]) + ".")
    return _sentence(" ".join([clause, *adjuncts]) + ".")


def _adjuncts(frame: Event) -> list[tuple[str, ...]]:
    """Options for the words of place and time, as far as the event has them."""
    slots = ((frame.place, lexicon().places), (frame.time, lexicon().times))
    return [table[name].words for name, table in slots if name is not None]


def _entity(entity: Entity, random: Random, plain: bool) -> str:
    words = lexicon()
    options = words.nouns[entity.noun].words
    singular, plural = options[0] if plain else random.choice(options)
    phrase = singular if entity.number == 1 else plural
    if entity.adjective:
        adjectives = words.adjectives[entity.adjective].words
        phrase = f"{adjectives[0] if plain else random.choice(adjectives)} {phrase}"
    return _article(phrase) if entity.number == 1 else f"{words.numbers[entity.number]} {phrase}"


def _article(phrase: str) -> str:
    return f"{'an' if phrase[0] in 'aeiou' and not phrase.startswith('uni') else 'a'} {phrase}"


def _sentence(text: str) -> str:
    return text[0].upper() + text[1:]
