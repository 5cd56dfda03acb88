"""Round-trip translation of a corpus, and what it changed (EDFSE, TNCSE, JTCSE)."""

import itertools
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean

import numpy as np

from cselab.data.pivot import WORD, LexicalPivot
from cselab.data.translators import Translator
from cselab.data.trip_cache import TripCache
from cselab.errors import DataError
from cselab.progress import progress_bar

WINDOW = 16
"""Batches whose sentences are sorted by length together: a batch takes as long as its longest sentence."""
SAMPLE = 100
"""Sentences that the time of a corpus is estimated from."""
SAMPLED = 2000
"""Pairs, evenly spread, that self-BLEU is computed on; a million would take minutes."""


class RoundTrip:
    """`RoundTrip("fr")(sentences)`: round trips, one a sentence, in order, lazily.

    pivot: names the language; without a translator, the lexical pivot of that name.
    translator: English to the pivot and back, see `cselab.data.translators.open_translator`.
    cache: a folder, of this translator alone, where finished round trips are kept in Parquet by the hash of their sentence. What is there
        is not translated again; interrupted at any moment, the same call goes on to the same output.
    batch_size: sentences the translator is given at a time; None is the translator's own, or 64.

    Where `sentences` has a length and its first hundred say that it takes more than a minute, one line says
    how long before it starts. A sentence that comes back empty is kept as it was.
    Memory: the round trips that the cache holds, about 0.3 GB a million sentences.

    Raises DataError, naming the batch, when the translator returns another number of lines than it was given, and for a
    damaged cache.
    """

    def __init__(
        self,
        pivot: str,
        translator: Translator | None = None,
        *,
        cache: str | Path | None = None,
        batch_size: int | None = None,
    ):
        self.pivot = pivot
        self.translate: Translator = LexicalPivot(pivot) if translator is None else translator
        self.cache = cache
        self.batch_size = batch_size or getattr(self.translate, "batch_size", 64)

    def __call__(self, sentences: Iterable[str]) -> Iterator[str]:
        """Shows progress, with the time left, where `sentences` has a length."""
        total = len(sentences) if hasattr(sentences, "__len__") else None
        lines, done = iter(sentences), 0
        progress = progress_bar(f"round trips ({self.pivot})", total, "sentence", delay=2.0)
        with TripCache(self.cache) as cache, progress as bar:
            while window := list(itertools.islice(lines, WINDOW * self.batch_size)):
                new = [sentence for sentence in dict.fromkeys(window) if sentence not in cache]
                if total and not done and new:
                    self._announce(new[:SAMPLE], total)
                new.sort(key=len, reverse=True)
                for start in range(0, len(new), self.batch_size):
                    batch = new[start : start + self.batch_size]
                    cache.add(batch, self._translated(batch, (done + start) // self.batch_size + 1))
                    bar.update(len(batch))
                bar.update(len(window) - len(new))
                done += len(window)
                yield from (cache[sentence] for sentence in window)
                cache.forget()

    def seconds_for(self, sentences: list[str], total: int) -> float:
        """Estimated seconds of `total` round trips, from those of `sentences`, which are made and not kept."""
        self.translate(sentences[:1])  # loads the weights
        started = time.perf_counter()
        self.translate(sentences)
        return total * (time.perf_counter() - started) / len(sentences)

    def _announce(self, sample: list[str], total: int) -> None:
        if total <= 10 * len(sample):
            return
        seconds = self.seconds_for(sample, total)
        if seconds > 60:
            print(
                f"round trips ({self.pivot}): {total:,} sentences take about {_clock(seconds)} on this machine "
                f"({total / seconds:,.0f} a second, from the first {len(sample)}); those in the cache take none"
            )

    def _translated(self, batch: list[str], number: int) -> list[str]:
        back = self.translate(batch)
        if len(back) != len(batch):
            raise DataError(
                f"batch {number} ({batch[0]!r:.60} …): the translator to {self.pivot!r} and back returned {len(back)} lines for "
                f"{len(batch)}; it must return one line a sentence"
            )
        return [" ".join(trip.split()) or original for trip, original in zip(back, batch, strict=True)]


def _clock(seconds: float) -> str:
    return f"{seconds / 3600:.1f} hours" if seconds > 5400 else f"{seconds / 60:.0f} minutes"


@dataclass(frozen=True)
class RoundTripReport:
    """What a round trip did to a corpus. Shares are of sentences; overlap is the mean Jaccard index of the word sets;
    length_ratio the mean of words after over words before; self_bleu BLEU (0 to 100, sacrebleu) of the round trips against the
    sentences, 100 for no change; duplicates the share that came back equal to an earlier one; samples some that changed."""

    sentences: int
    changed: float
    overlap: float
    length_ratio: float
    self_bleu: float
    duplicates: float
    samples: tuple[tuple[str, str], ...]

    def __str__(self) -> str:
        return (
            f"{self.sentences:,} sentences: {self.changed:.1%} changed, token overlap {self.overlap:.3f}, self-BLEU {self.self_bleu:.1f}, "
            f"length ratio {self.length_ratio:.3f}, {self.duplicates:.1%} duplicates"
        )


def report(pairs: Iterable[tuple[str, str]], *, samples: int = 5) -> RoundTripReport:
    """Measure (original, round trip) pairs; self-BLEU on at most 2,000 of them, evenly spread. Raises DataError without any."""
    import sacrebleu

    pairs = list(pairs)
    if not pairs:
        raise DataError("no pairs to report on; give at least one (original, round trip)")
    lengths = [(len(WORD.findall(a)), len(WORD.findall(b))) for a, b in pairs]
    changed = [(a, b) for a, b in pairs if a != b]
    before, after = zip(*_spread(pairs, SAMPLED), strict=True)
    return RoundTripReport(
        sentences=len(pairs),
        changed=len(changed) / len(pairs),
        overlap=fmean(token_overlap(a, b) for a, b in pairs),
        length_ratio=fmean(after / before for before, after in lengths if before),
        self_bleu=sacrebleu.corpus_bleu(after, [before], force=True).score,
        duplicates=1 - len({b for _, b in pairs}) / len(pairs),
        samples=tuple(_spread(changed, samples)),
    )


def _spread(pairs: list[tuple[str, str]], most: int) -> list[tuple[str, str]]:
    """At most so many, at even distances."""
    return [pairs[i] for i in np.linspace(0, len(pairs) - 1, min(most, len(pairs))).astype(int)]


def token_overlap(a: str, b: str) -> float:
    """Jaccard index of the two sets of words, case ignored; 1 for two texts without words."""
    one, two = ({word.lower() for word in WORD.findall(text)} for text in (a, b))
    return len(one & two) / len(one | two) if one | two else 1.0
