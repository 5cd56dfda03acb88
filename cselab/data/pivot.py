"""An offline stand-in for round-trip translation: artificial pivots that cut the vocabulary differently from English.

Several English words share one word of the pivot, and only one of them comes back; some words slip to a neighbour in the taxonomy;
articles get lost; adjuncts move. Each pivot has its own cuts, as languages do. It is no language: named "fr" because it takes
that one's place in the workbook, and its round trips are cleaner and duller than a translator's.
"""

import functools
import re
import zlib

import yaml

from cselab.data.sources import embedded_dir
from cselab.data.world.lexicon import Lexicon, lexicon
from cselab.errors import SettingsError, suggest

WORD = re.compile(r"[A-Za-z][A-Za-z'-]*")
FRONTED = re.compile(r"^((?:In|On|At|By) (?:the )?\w+|Yesterday|Outdoors|Indoors|Outside|Inside), (.+?)([.!?])$")
TRAILING = re.compile(r"^([^,]+?) ((?:in|on|at|by) (?:the )?\w+|yesterday|outdoors|indoors)([.!?])$")
ARTICLE_AND_WORD = re.compile(r"\b([Aa])n? ([A-Za-z][A-Za-z'-]*)")
ARTICLES = {"a": "the", "an": "the", "the": "a"}


class LexicalPivot:
    """A translator there and back: `pivot(sentences) -> sentences`, the same for the same sentence everywhere.

    Raises SettingsError for a name that data/world/pivots.yaml does not have.
    """

    def __init__(self, name: str):
        settings = _tables()["pivots"]
        if name not in settings:
            raise SettingsError(f"unknown pivot {name!r}; {suggest(name, settings)}")
        self.name = name
        self.order = settings[name]["order"]
        self.articles = settings[name]["articles"]
        self.slips = settings[name]["slips"]
        self.words = _cut(settings[name]["seed"])

    @property
    def fingerprint(self) -> str:
        """Of its words and habits."""
        return f"{zlib.crc32(repr((self.words, self.order, self.articles, self.slips)).encode()):08x}"

    def __call__(self, sentences: list[str]) -> list[str]:
        return [self._there_and_back(sentence) for sentence in sentences]

    def _there_and_back(self, sentence: str) -> str:
        chance = _Chance(f"{self.name} {sentence}")
        moved = self._reorder(sentence)
        text = WORD.sub(lambda match: self._word(match.group(), chance), moved)
        text = ARTICLE_AND_WORD.sub(lambda m: m[0] if m[0] in moved else _with_article(m[1], m[2]), text)
        return text[0].upper() + text[1:] if sentence[:1].isupper() else text

    def _word(self, word: str, chance: "_Chance") -> str:
        low = word.lower()
        if low in ARTICLES:
            return ARTICLES[low] if chance() < self.articles else word
        back, slip = self.words.get(low, (word, None))
        if slip is not None and chance() < self.slips:
            back = slip
        return back[0].upper() + back[1:] if word[0].isupper() and back != word else back

    def _reorder(self, sentence: str) -> str:
        if self.order == "adjunct last" and (found := FRONTED.match(sentence)):
            front, clause, end = found.groups()
            keep = front.split()[-1][0].isupper() and " " in front  # "In London"
            return f"{clause} {front if keep and front[0].islower() else front[0].lower() + front[1:]}{end}"
        if self.order == "adjunct first" and (found := TRAILING.match(sentence)):
            clause, adjunct, end = found.groups()
            first = clause.split()[0]
            clause = (
                clause[0].lower() + clause[1:]
                if first in ("A", "An", "The", "Two", "Three", "Four", "Five")
                else clause
            )
            return f"{adjunct}, {clause}{end}"
        return sentence


class _Chance:
    """A few uniform draws that depend on a text alone, not on the order of calls."""

    def __init__(self, text: str):
        self.state = zlib.crc32(text.encode())

    def __call__(self) -> float:
        self.state = zlib.crc32(self.state.to_bytes(4, "big"))
        return self.state / 2**32


def _with_article(article: str, word: str) -> str:
    return f"{article}{'n' if word[0] in 'aeiouAEIOU' else ''} {word}"


@functools.cache
def _tables() -> dict:
    return yaml.safe_load((embedded_dir() / "world" / "pivots.yaml").read_text(encoding="utf-8"))


def _cut(seed: int) -> dict[str, tuple[str, str | None]]:
    """word -> (what comes back, what a slip gives). A quarter of the groups is left alone, another quarter for each seed."""
    table: dict[str, tuple[str, str | None]] = {}
    for group, slips in [(group, [None] * len(group)) for group in _tables()["common"]] + list(_groups(lexicon())):
        draw = zlib.crc32(f"{seed} {' '.join(group)}".encode())
        known = draw % 4 != 0
        chosen = group[(draw // 4) % len(group)] if known else None
        for word, slip in zip(group, slips, strict=True):
            if " " not in word:
                table.setdefault(word, (chosen or word, slip))  # "cook" is a noun first
    return table


def _groups(words: Lexicon):
    """Synonyms of the world's lexicon, form by form, and for nouns the same form of the broader word."""
    for noun in words.nouns.values():
        parent = words.nouns[noun.parent] if noun.parent else None
        for form in (0, 1):
            group = [forms[form] for forms in noun.words]
            yield group, [parent.words[0][form] if parent else None] * len(group)
    for verb in words.verbs.values():
        for form in range(5):
            group = [forms[form] for forms in verb.words if " " not in forms[form]]
            yield group, [None] * len(group)
    for word in words.adjectives.values():
        yield list(word.words), [None] * len(word.words)
