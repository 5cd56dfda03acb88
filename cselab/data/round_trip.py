"""Round-trip translation of a corpus, and what it changed (EDFSE, TNCSE, JTCSE)."""

import itertools
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from statistics import fmean

from cselab.data.pivot import WORD, LexicalPivot
from cselab.errors import DataError

Translator = Callable[[list[str]], list[str]]
"""English sentences to a pivot and back: as many lines as came in, in their order."""


class RoundTrip:
    """`RoundTrip("fr")(sentences)`: round trips, one a sentence, in order, lazily.

    pivot: the name of a lexical pivot, or any translator. A sentence that comes back empty is kept as it was.

    Raises DataError, naming the batch, when the translator returns another number of lines than it was given.
    """

    def __init__(self, pivot: str | Translator, *, batch_size: int = 256):
        self.translate: Translator = LexicalPivot(pivot) if isinstance(pivot, str) else pivot
        self.batch_size = batch_size

    def __call__(self, sentences: Iterable[str]) -> Iterator[str]:
        sentences = iter(sentences)
        for number in itertools.count(1):
            batch = list(itertools.islice(sentences, self.batch_size))
            if not batch:
                return
            back = self.translate(batch)
            if len(back) != len(batch):
                raise DataError(
                    f"batch {number} (sentences {(number - 1) * self.batch_size + 1} on, {batch[0]!r:.60} …): the translator "
                    f"returned {len(back)} lines for {len(batch)}; it must return one line a sentence"
                )
            yield from (trip.strip() or original for trip, original in zip(back, batch, strict=True))


@dataclass(frozen=True)
class RoundTripReport:
    """What a round trip did to a corpus. Shares are of sentences; overlap is the mean Jaccard index of the word sets;
    length_ratio the mean of words after over words before; duplicates the share that came back equal to an earlier one."""

    sentences: int
    changed: float
    overlap: float
    length_ratio: float
    duplicates: float

    def __str__(self) -> str:
        return (
            f"{self.sentences:,} sentences: {self.changed:.1%} changed, token overlap {self.overlap:.3f}, "
            f"length ratio {self.length_ratio:.3f}, {self.duplicates:.1%} duplicates"
        )


def report(pairs: Iterable[tuple[str, str]]) -> RoundTripReport:
    """Measure (original, round trip) pairs. Raises DataError without any."""
    pairs = list(pairs)
    if not pairs:
        raise DataError("no pairs to report on; give at least one (original, round trip)")
    lengths = [(len(WORD.findall(a)), len(WORD.findall(b))) for a, b in pairs]
    return RoundTripReport(
        sentences=len(pairs),
        changed=fmean(a != b for a, b in pairs),
        overlap=fmean(token_overlap(a, b) for a, b in pairs),
        length_ratio=fmean(after / before for before, after in lengths if before),
        duplicates=1 - len({b for _, b in pairs}) / len(pairs),
    )


def token_overlap(a: str, b: str) -> float:
    """Jaccard index of the two sets of words, case ignored; 1 for two texts without words."""
    one, two = ({word.lower() for word in WORD.findall(text)} for text in (a, b))
    return len(one & two) / len(one | two) if one | two else 1.0
