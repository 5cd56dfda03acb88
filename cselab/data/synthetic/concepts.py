"""Parse a synthetic sentence into its concepts: an automatic test of whether a rewording kept the
meaning."""

import functools
import re
from collections import Counter

from cselab.data.synthetic.lexicon import Noun, Verb, lexicon

WORD = re.compile(r"[a-z'-]+|\d+")
LONGEST = 5  # at most so many words has a phrase of the lexicon


def concepts(sentence: str) -> Counter[frozenset[str]]:
    """Count the concepts that a sentence names.

    A word with two meanings ("cook") counts as one entry with both concepts. Voice, tense, order,
    articles and words outside the lexicon are ignored, except "not" and numbers above one.
    """
    words, table, i = WORD.findall(sentence.lower()), _table(), 0
    counts: Counter[frozenset[str]] = Counter()
    while i < len(words):
        for n in range(min(LONGEST, len(words) - i), 0, -1):
            if concept := table.get(" ".join(words[i : i + n])):
                counts[concept] += 1
                break
        else:
            n = 1
        i += n
    return counts


def same_meaning(a: str, b: str) -> bool:
    """Whether two sentences name the same concepts: true of synonyms, false of a broader word.

    Examples:
        >>> from cselab.data.synthetic import same_meaning
        >>> same_meaning("A man is buying a car.", "A car was purchased by a man.")
        True
        >>> same_meaning("A man is buying a car.", "A man is buying a vehicle.")
        False
    """
    return concepts(a) == concepts(b)


@functools.cache
def _table() -> dict[str, frozenset[str]]:
    """The concepts of each word or phrase of the lexicon."""
    words = lexicon()
    table: dict[str, set[str]] = {"not": {"not"}}
    inflected: list[Noun | Verb] = [*words.nouns.values(), *words.verbs.values()]
    others = (words.adjectives, words.places, words.times, words.goods, words.moves)
    entries = [
        *((word.name, form) for word in inflected for forms in word.words for form in forms),
        *((verb.name, verb.noun) for verb in words.verbs.values() if verb.noun),
        *((word.name, form) for group in others for word in group.values() for form in word.words),
        *((str(n), form) for n, word in words.numbers.items() if n > 1 for form in (word, str(n))),
        *((str(n), str(n)) for n in words.amounts),
    ]
    for name, form in entries:
        table.setdefault(form.lower(), set()).add(name)
    return {form: frozenset(names) for form, names in table.items()}
