"""A generated world of plain English sentences with known meanings: the text and the tests that ship with the project."""

from collections.abc import Iterator
from random import Random

from cselab.data.world.frames import draw_frame
from cselab.data.world.pairs import StsPair, sts_pairs
from cselab.data.world.realise import describe
from cselab.data.world.similarity import similarity

__all__ = ["StsPair", "describe", "draw_frame", "sentences", "similarity", "sts_pairs"]


def sentences(n: int, seed: int = 0) -> Iterator[str]:
    """`n` distinct sentences, the same for the same seed on every machine; none of them is in a dev or test pair."""
    seen = {text for split in ("dev", "test") for pair in sts_pairs(split) for text in (pair.sentence1, pair.sentence2)}
    random = Random(seed)
    count = 0
    while count < n:
        text = describe(draw_frame(random), random)
        if text not in seen:
            seen.add(text)
            count += 1
            yield text
