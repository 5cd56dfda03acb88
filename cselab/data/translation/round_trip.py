"""Round-trip translation of a corpus (EDFSE, TNCSE, JTCSE)."""

import itertools
import math
from collections.abc import Iterable, Iterator, Sized
from pathlib import Path
from typing import Protocol

from tqdm import tqdm

from cselab.data.progress_bar import progress_bar
from cselab.data.translation.cache import RoundTripCache
from cselab.data.translation.pivot import LexicalPivot
from cselab.data.translation.translators import Translator
from cselab.errors import DataError

WINDOW = 16
"""Sentences of so many batches are sorted by length: the longest determines the time of a batch."""


class Text(Protocol):
    """Sentences whose number is known: a list, a `Corpus`."""

    def __iter__(self) -> Iterator[str]: ...
    def __len__(self) -> int: ...


class RoundTrip:
    """Round-trip translation: `RoundTrip("fr")(sentences)` yields one round trip per sentence.

    The augmentation of TNCSE, https://arxiv.org/abs/2503.12739, and JTCSE. A sentence whose
    round trip is empty stays as it is. Memory: the round trips in the cache, about 0.3 GB per
    million sentences.

    Args:
        pivot: The pivot language; without a translator, the name of a lexical pivot.
        translator: A function from English to the pivot and back, see
            `cselab.data.translation.translators.open_translator`.
        cache: A folder for the round trips of this translator only. Sentences in it are not
            translated again; after an interruption, the same call continues to the same output.
        batch_size: Sentences per call; None: `batch_size` of the translator, or 64.

    Raises:
        DataError: With the number of the batch, for other than one line per sentence.

    Examples:
        >>> from cselab.data import RoundTrip
        >>> list(RoundTrip("fr")(["A man purchased a big automobile."]))
        ['A gentleman purchased a big car.']
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
        self.batch_size: int = batch_size or int(getattr(self.translate, "batch_size", 64))

    def __call__(self, sentences: Iterable[str]) -> Iterator[str]:
        """Yield round trips lazily, with a progress bar."""
        total = len(sentences) if isinstance(sentences, Sized) else None
        lines, done = iter(sentences), 0
        progress = progress_bar(f"round trips ({self.pivot})", total, "sentence", delay=2.0)
        with RoundTripCache(self.cache) as cache, progress as bar:
            while window := list(itertools.islice(lines, WINDOW * self.batch_size)):
                self._fill(cache, window, done, bar)
                done += len(window)
                yield from (cache[sentence] for sentence in window)
                cache.free_memory()

    def translate_part(self, sentences: Text, rank: int, processes: int) -> None:
        """Translate one process's contiguous part of the text into the cache, a folder.

        The batches are those of a call with the whole text, which after all parts gives the same
        as without them.
        """
        size = WINDOW * self.batch_size
        windows = math.ceil(len(sentences) / size)
        start, end = (windows * part // processes for part in (rank, rank + 1))
        lines = itertools.islice(sentences, end * size)
        total = min(end * size, len(sentences)) - start * size
        progress = progress_bar(f"round trips ({self.pivot})", total, "sentence", delay=2.0)
        with RoundTripCache(self.cache) as cache, progress as bar:
            cache.skip(itertools.islice(lines, start * size))
            for done in range(start * size, end * size, size):
                self._fill(cache, list(itertools.islice(lines, size)), done, bar)

    def _fill(self, cache: RoundTripCache, window: list[str], done: int, bar: tqdm) -> None:
        """Translate what the cache lacks of a window, which begins after `done` sentences."""
        new = [sentence for sentence in dict.fromkeys(window) if sentence not in cache]
        new.sort(key=len, reverse=True)
        for start in range(0, len(new), self.batch_size):
            batch = new[start : start + self.batch_size]
            cache.add(batch, self._translated(batch, (done + start) // self.batch_size + 1))
            bar.update(len(batch))
        bar.update(len(window) - len(new))

    def _translated(self, batch: list[str], number: int) -> list[str]:
        trips = self.translate(batch)
        if len(trips) != len(batch):
            raise DataError(
                f"batch {number} ({batch[0]!r:.60} …): the translator returned {len(trips)} lines "
                f"for {len(batch)}; it must return one line a sentence"
            )
        pairs = zip(trips, batch, strict=True)
        return [" ".join(trip.split()) or original for trip, original in pairs]
