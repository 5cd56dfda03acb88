"""From a sentence of the world back to its concepts: whether a rewording kept the meaning, without a person to ask."""

import functools
import re
from collections import Counter

from cselab.data.world.lexicon import lexicon

WORD = re.compile(r"[a-z'-]+|\d+")
LONGEST = 5
"""Words of the longest phrase in the lexicon, at most."""


def concepts(sentence: str) -> Counter[frozenset[str]]:
    """The concepts a sentence names, how often each; a word of two concepts ("cook") counts as both in one.

    Voice, tense, articles and order are no concepts, nor are words outside the lexicon, but for "not" and numbers above one.
    """
    words, table, found, i = WORD.findall(sentence.lower()), _table(), Counter(), 0
    while i < len(words):
        for n in range(min(LONGEST, len(words) - i), 0, -1):
            if named := table.get(" ".join(words[i : i + n])):
                found[named] += 1
                break
        else:
            n = 1
        i += n
    return found


def same_meaning(a: str, b: str) -> bool:
    """Whether two sentences name the same concepts: true of synonyms, false where a word slipped to a broader one."""
    return concepts(a) == concepts(b)


@functools.cache
def _table() -> dict[str, frozenset[str]]:
    words = lexicon()
    table: dict[str, set[str]] = {"not": {"not"}}
    entries = [
        *((noun.name, [form for forms in noun.words for form in forms]) for noun in words.nouns.values()),
        *((verb.name, [form for forms in verb.words for form in forms]) for verb in words.verbs.values()),
        *((verb.name, [verb.noun]) for verb in words.verbs.values() if verb.noun),
        *((w.name, w.words) for t in (words.adjectives, words.places, words.times, words.goods, words.moves) for w in t.values()),
        *((str(n), [word, str(n)]) for n, word in words.numbers.items() if n > 1),
        *((str(n), [str(n)]) for n in words.amounts),
    ]  # fmt: skip
    for name, forms in entries:
        for form in forms:
            table.setdefault(form.lower(), set()).add(name)
    return {form: frozenset(names) for form, names in table.items()}
