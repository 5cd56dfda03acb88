"""Synthetic text: generated plain English sentences with known meanings, and tests of them."""

from collections.abc import Iterator
from random import Random

from cselab.data.synthetic.concepts import same_meaning
from cselab.data.synthetic.frames import draw_frame
from cselab.data.synthetic.realise import describe
from cselab.data.synthetic.sets import (
    Couple,
    StsPair,
    Triplet,
    captions,
    couples,
    held_out_sentences,
    sts_pairs,
    triplets,
)
from cselab.data.synthetic.similarity import similarity

__all__ = [
    "Couple",
    "StsPair",
    "Triplet",
    "captions",
    "couples",
    "describe",
    "draw_frame",
    "same_meaning",
    "sentences",
    "similarity",
    "sts_pairs",
    "triplets",
]


def sentences(n: int, seed: int = 0) -> Iterator[str]:
    """Generate `n` distinct sentences, the same for the same seed on every machine.

    None of them is in a dev or test pair.

    Examples:
        >>> from cselab.data.synthetic import sentences
        >>> list(sentences(2))
        ['A man is dancing on the farm.', 'A physician is opening four green boxes in Tokyo.']
    """
    seen = set(held_out_sentences())
    random = Random(seed)
    count = 0
    while count < n:
        text = describe(draw_frame(random), random)
        if text not in seen:
            seen.add(text)
            count += 1
            yield text
