"""Report of what round trips change in a text."""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from statistics import fmean

import numpy as np

from cselab.data.translation.pivot import WORD
from cselab.errors import DataError

BLEU_PAIRS = 2000
"""Number of pairs on which self-BLEU is computed, evenly spread; a million would take minutes."""


@dataclass(frozen=True)
class RoundTripReport:
    """Statistics of the round trips of a corpus.

    Attributes:
        changed: Share of sentences that changed.
        overlap: Mean Jaccard index of the word sets before and after.
        length_ratio: Mean of words after over words before; NaN if no sentence has words.
        self_bleu: BLEU (0 to 100, sacrebleu) against the sentences; 100: no change.
        duplicates: Share of round trips that equal an earlier one.
        samples: Some (sentence, round trip) that changed.
    """

    sentences: int
    changed: float
    overlap: float
    length_ratio: float
    self_bleu: float
    duplicates: float
    samples: tuple[tuple[str, str], ...]

    def __str__(self) -> str:
        return (
            f"{self.sentences:,} sentences: {self.changed:.1%} changed, token overlap "
            f"{self.overlap:.3f}, self-BLEU {self.self_bleu:.1f}, length ratio "
            f"{self.length_ratio:.3f}, {self.duplicates:.1%} duplicates"
        )


def report(pairs: Iterable[tuple[str, str]], *, samples: int = 5) -> RoundTripReport:
    """Statistics of (original, round trip) pairs; words are of Latin letters, as in English.

    Raises:
        DataError: Without pairs.
    """
    import sacrebleu

    pairs = list(pairs)
    if not pairs:
        raise DataError("no pairs to report on; give at least one (original, round trip)")
    lengths = [(len(WORD.findall(a)), len(WORD.findall(b))) for a, b in pairs]
    ratios = [after / before for before, after in lengths if before]
    changed = [(a, b) for a, b in pairs if a != b]
    before, after = zip(*_spread(pairs, BLEU_PAIRS), strict=True)
    return RoundTripReport(
        sentences=len(pairs),
        changed=len(changed) / len(pairs),
        overlap=fmean(token_overlap(a, b) for a, b in pairs),
        length_ratio=fmean(ratios) if ratios else math.nan,
        self_bleu=sacrebleu.corpus_bleu(after, [before], force=True).score,
        duplicates=1 - len({b for _, b in pairs}) / len(pairs),
        samples=tuple(_spread(changed, samples)),
    )


def _spread(pairs: list[tuple[str, str]], most: int) -> list[tuple[str, str]]:
    """At most `most` of the pairs, evenly spread."""
    return [pairs[i] for i in np.linspace(0, len(pairs) - 1, min(most, len(pairs))).astype(int)]


def token_overlap(a: str, b: str) -> float:
    """Jaccard index of the two sets of words, case ignored; 1 for two texts without words."""
    one, two = ({word.lower() for word in WORD.findall(text)} for text in (a, b))
    return len(one & two) / len(one | two) if one | two else 1.0
