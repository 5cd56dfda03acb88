"""A generated world of plain English sentences with known meanings: the text and the tests that ship with the project."""

from collections.abc import Iterator
from random import Random

from cselab.data.world.concepts import same_meaning
from cselab.data.world.frames import draw_frame
from cselab.data.world.pairs import StsPair, held_out_sentences, sts_pairs
from cselab.data.world.realise import describe
from cselab.data.world.sets import Triplet, captions, triplets
from cselab.data.world.similarity import similarity

__all__ = [
    "StsPair",
    "Triplet",
    "captions",
    "describe",
    "draw_frame",
    "same_meaning",
    "sentences",
    "similarity",
    "sts_pairs",
    "triplets",
]


def sentences(n: int, seed: int = 0) -> Iterator[str]:
    """`n` distinct sentences, the same for the same seed on every machine; none of them is in a dev or test pair."""
    seen = set(held_out_sentences())
    random = Random(seed)
    count = 0
    while count < n:
        text = describe(draw_frame(random), random)
        if text not in seen:
            seen.add(text)
            count += 1
            yield text
