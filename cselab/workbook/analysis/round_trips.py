"""Report of what round trips change in a text."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import fmean

import numpy as np

from cselab.data.translation.pivot import WORD
from cselab.errors import DataError


@dataclass(frozen=True)
class RoundTripReport:
    """Statistics of the round trips of a corpus.

    Attributes:
        changed: Share of sentences that changed.
        same_words: Share of sentences that changed, but have the same set of words.
        overlap: Mean `token_overlap` of a sentence and its round trip.
    """

    changed: float
    same_words: float
    overlap: float


def report(pairs: Iterable[tuple[str, str]]) -> RoundTripReport:
    """Statistics of (original, round trip) pairs; words are of Latin letters, as in English.

    Raises:
        DataError: Without pairs.
    """
    pairs = list(pairs)
    if not pairs:
        raise DataError("no pairs to report on; give at least one (original, round trip)")
    overlaps = [token_overlap(a, b) for a, b in pairs]
    changed = [a != b for a, b in pairs]
    same = [new and overlap == 1 for new, overlap in zip(changed, overlaps, strict=True)]
    return RoundTripReport(fmean(changed), fmean(same), fmean(overlaps))


def spread(pairs: Sequence[tuple[str, str]], most: int) -> list[tuple[str, str]]:
    """At most `most` of the pairs, evenly spread."""
    return [pairs[i] for i in np.linspace(0, len(pairs) - 1, min(most, len(pairs))).astype(int)]


def token_overlap(a: str, b: str) -> float:
    """Jaccard index of the two sets of words, case ignored; 1 for two texts without words."""
    one, two = ({word.lower() for word in WORD.findall(text)} for text in (a, b))
    return len(one & two) / len(one | two) if one | two else 1.0
