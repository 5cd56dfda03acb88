"""Lexicon of the synthetic text: concepts with synonyms, a small taxonomy and antonyms.

Read from data/synthetic/lexicon.yaml.
"""

import functools
from dataclasses import dataclass, field
from typing import Any

import yaml

from cselab.data.sources import embedded_dir


@dataclass(frozen=True)
class Noun:
    """A thing: its (singular, plural) pairs, the most common first, and its broader concept."""

    name: str
    kind: str
    words: tuple[tuple[str, str], ...]
    parent: str | None


@dataclass(frozen=True)
class Verb:
    """An action; kinds of nouns that act, and that it is done to (none: intransitive).

    Attributes:
        words: (base, third person, past, participle, gerund) of each synonym.
        noun: The action as a noun with its preposition ("theft of"), where English has one.
    """

    name: str
    words: tuple[tuple[str, str, str, str, str], ...]
    parent: str | None
    opposite: str | None
    agents: tuple[str, ...]
    patients: tuple[str, ...]
    noun: str | None


@dataclass(frozen=True)
class Word:
    """An adjective, a place, a time or a move of a price, with its synonyms and its opposite."""

    name: str
    words: tuple[str, ...]
    parent: str | None = None
    opposite: str | None = None
    kinds: tuple[str, ...] = ()


@dataclass(frozen=True)
class Lexicon:
    """All words by concept; the nouns of each kind, and the adjectives that fit it."""

    nouns: dict[str, Noun]
    verbs: dict[str, Verb]
    adjectives: dict[str, Word]
    places: dict[str, Word]
    times: dict[str, Word]
    goods: dict[str, Word]
    moves: dict[str, Word]
    amounts: tuple[int, ...]
    numbers: dict[int, str]
    by_kind: dict[str, tuple[str, ...]] = field(repr=False)
    adjectives_of: dict[str, tuple[str, ...]] = field(repr=False)


@functools.cache
def lexicon() -> Lexicon:
    """The lexicon, read once."""
    path = embedded_dir() / "synthetic" / "lexicon.yaml"
    raw = yaml.safe_load(path.read_text(encoding="utf-8"))
    by_kind, markets = raw["nouns"], raw["markets"]
    adjectives = _words(raw["adjectives"])
    return Lexicon(
        nouns={n: _noun(n, kind, x) for kind, group in by_kind.items() for n, x in group.items()},
        verbs={name: _verb(name, entry) for name, entry in raw["verbs"].items()},
        adjectives=adjectives,
        places=_words(raw["places"]),
        times=_words(raw["times"]),
        goods={name: Word(name, tuple(words)) for name, words in markets["goods"].items()},
        moves=_words(markets["moves"]),
        amounts=tuple(markets["amounts"]),
        numbers=raw["numbers"],
        by_kind={kind: tuple(group) for kind, group in by_kind.items()},
        adjectives_of={
            kind: tuple(n for n, word in adjectives.items() if kind in word.kinds)
            for kind in by_kind
        },
    )


def _noun(name: str, kind: str, entry: dict[str, Any]) -> Noun:
    plurals = entry.get("plural") or [word + "s" for word in entry["words"]]
    return Noun(name, kind, tuple(zip(entry["words"], plurals, strict=True)), entry.get("is"))


def _verb(name: str, entry: dict[str, Any]) -> Verb:
    words = tuple(tuple(forms) for forms in entry["words"])
    agents, patients = tuple(entry["agent"]), tuple(entry.get("patient", ()))
    return Verb(name, words, entry.get("is"), entry.get("not"), agents, patients, entry.get("noun"))


def _words(entries: dict[str, dict[str, Any]]) -> dict[str, Word]:
    words = {}
    for name, entry in entries.items():
        forms, kinds = tuple(entry["words"]), tuple(entry.get("kinds", ()))
        words[name] = Word(name, forms, entry.get("is"), entry.get("not"), kinds)
    return words
