"""Lexical pivots: an offline stand-in for round-trip translation.

A lexical pivot is an artificial language in which several English words share one word, so that
only one of them comes back. Some words come back as a broader one, articles get lost, and adjuncts
move. Each pivot groups the vocabulary differently, as languages do. "fr" is not French: it only
takes the place of French in the workbook. Its round trips are more regular than a translator's.
"""

import functools
import re
import zlib

import yaml

from cselab.data.sources import embedded_dir
from cselab.data.synthetic.lexicon import Lexicon, lexicon
from cselab.errors import SettingsError, suggest

WORD = re.compile(r"[A-Za-z][A-Za-z'-]*")
FRONTED = re.compile(
    r"^((?:In|On|At|By) (?:the )?\w+|Yesterday|Outdoors|Indoors|Outside|Inside), (.+?)([.!?])$"
)
TRAILING = re.compile(
    r"^([^,]+?) ((?:in|on|at|by) (?:the )?\w+|yesterday|outdoors|indoors)([.!?])$"
)
ARTICLE_AND_WORD = re.compile(r"\b([Aa])n? ([A-Za-z][A-Za-z'-]*)")
ARTICLES = {"a": "the", "an": "the", "the": "a"}


class LexicalPivot:
    """Round-trip translator: `pivot(sentences) -> sentences`, deterministic for each sentence.

    Raises:
        SettingsError: For a name that is not in data/synthetic/pivots.yaml.
    """

    def __init__(self, name: str):
        settings = _tables()["pivots"]
        if name not in settings:
            raise SettingsError(f"unknown pivot {name!r}; {suggest(name, settings)}")
        self.name, rules = name, settings[name]
        self.order, self.articles, self.slips = rules["order"], rules["articles"], rules["slips"]
        self.words = _round_trip_words(rules["seed"])

    @property
    def fingerprint(self) -> str:
        """Eight hex digits of the pivot's words and rules."""
        rules = (self.words, self.order, self.articles, self.slips)
        return f"{zlib.crc32(repr(rules).encode()):08x}"

    def __call__(self, sentences: list[str]) -> list[str]:
        return [self._round_trip(sentence) for sentence in sentences]

    def _round_trip(self, sentence: str) -> str:
        random = _TextRandom(f"{self.name} {sentence}")
        moved = self._reorder(sentence)
        text = WORD.sub(lambda match: self._word(match.group(), random), moved)
        text = ARTICLE_AND_WORD.sub(
            lambda m: m[0] if m[0] in moved else _with_article(m[1], m[2]), text
        )
        return text[0].upper() + text[1:] if sentence[:1].isupper() else text

    def _word(self, word: str, random: "_TextRandom") -> str:
        low = word.lower()
        if low in ARTICLES:
            return ARTICLES[low] if random() < self.articles else word
        back, slip = self.words.get(low, (word, None))
        if slip is not None and random() < self.slips:
            back = slip
        return back[0].upper() + back[1:] if word[0].isupper() and back != word else back

    def _reorder(self, sentence: str) -> str:
        if self.order == "adjunct last" and (match := FRONTED.match(sentence)):
            front, clause, end = match.groups()
            keep = front.split()[-1][0].isupper() and " " in front  # "In London"
            if not (keep and front[0].islower()):
                front = front[0].lower() + front[1:]
            return f"{clause} {front}{end}"
        if self.order == "adjunct first" and (match := TRAILING.match(sentence)):
            clause, adjunct, end = match.groups()
            if clause.split()[0] in ("A", "An", "The", "Two", "Three", "Four", "Five"):
                clause = clause[0].lower() + clause[1:]
            return f"{adjunct}, {clause}{end}"
        return sentence


class _TextRandom:
    """Uniform random numbers that depend on a text only, not on the order of calls."""

    def __init__(self, text: str):
        self.state = zlib.crc32(text.encode())

    def __call__(self) -> float:
        self.state = zlib.crc32(self.state.to_bytes(4, "big"))
        return self.state / 2**32


def _with_article(article: str, word: str) -> str:
    return f"{article}{'n' if word[0] in 'aeiouAEIOU' else ''} {word}"


@functools.cache
def _tables() -> dict:
    path = embedded_dir() / "synthetic" / "pivots.yaml"
    return yaml.safe_load(path.read_text(encoding="utf-8"))


def _round_trip_words(seed: int) -> dict[str, tuple[str, str | None]]:
    """For each word, the word that comes back, and the broader word that may come back instead.

    A quarter of the groups comes back unchanged, a different quarter for each seed.
    """
    table: dict[str, tuple[str, str | None]] = {}
    common = [(group, [None] * len(group)) for group in _tables()["common"]]
    for group, slips in [*common, *_groups(lexicon())]:
        draw = zlib.crc32(f"{seed} {' '.join(group)}".encode())
        chosen = group[(draw // 4) % len(group)] if draw % 4 else None
        for word, slip in zip(group, slips, strict=True):
            if " " not in word:
                table.setdefault(word, (chosen or word, slip))  # "cook" is a noun first
    return table


def _groups(words: Lexicon):
    """Synonyms of the lexicon, form by form; for nouns with the same form of the broader word."""
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
