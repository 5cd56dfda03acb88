"""STS pairs of the world: a frame, one change to it, and the rating that the rule gives; tagged with the change."""

import functools
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from random import Random

from cselab.data.world.changes import CHANGES, further
from cselab.data.world.frames import Event, draw_event, draw_market
from cselab.data.world.realise import describe, nominalise
from cselab.data.world.similarity import similarity

PAIRS = 1500
AT_MOST = (220, 100, 75, 55, 55)
"""Pairs of one tag in each fifth of the scale, so that no tag is a rating and every fifth has the same number."""
SEEDS = {"dev": 1_000_001, "test": 1_000_002}


@dataclass(frozen=True)
class StsPair:
    """Two sentences, their rating 0 to 5, and what was changed between them."""

    sentence1: str
    sentence2: str
    score: float
    tag: str


@functools.cache
def sts_pairs(split: str) -> tuple[StsPair, ...]:
    """The pairs of "dev" or "test": 1,500 each, the same on every machine; no sentence is in both."""
    taken = (
        {text for pair in sts_pairs("dev") for text in (pair.sentence1, pair.sentence2)} if split == "test" else set()
    )
    pairs: list[StsPair] = []
    fifths, tags = Counter(), Counter()
    for pair in _candidates(Random(SEEDS[split])):
        fifth = min(4, int(pair.score))
        texts = {pair.sentence1, pair.sentence2}
        full = fifths[fifth] == PAIRS // 5 or tags[pair.tag, fifth] == AT_MOST[fifth]
        if full or texts & taken or len(texts) < 2:
            continue
        taken |= texts
        fifths[fifth] += 1
        tags[pair.tag, fifth] += 1
        pairs.append(pair)
        if len(pairs) == PAIRS:
            break
    return tuple(pairs)


def _candidates(random: Random) -> Iterator[StsPair]:
    aside = Random(0)  # for nominalisations alone: the corpora have none, so that this paraphrase is new to every model
    while True:
        for tag, change in CHANGES.items():
            second = None
            while second is None:  # not every frame has a broader word, an opposite, or two who can change places
                market = tag in ("number", "antonym") and random.random() < 0.1
                first = draw_market(random) if market else draw_event(random)
                second = change(first, random)
            if isinstance(second, Event) and isinstance(first, Event) and tag != "unrelated":
                for _ in range(random.choice((0, 0, 1, 2))):  # further differences, so that a tag is not a rating
                    second = further(second, random)
            score = round(similarity(first, second), 2)
            one = describe(first, random, plain=tag == "synonym")
            two = describe(second, random)
            if tag == "paraphrase" and aside.random() < 0.5:
                two = nominalise(second, aside) or two
            if random.random() < 0.5:
                one, two = two, one
            yield StsPair(one, two, score, tag)


@functools.cache
def held_out_sentences() -> frozenset[str]:
    """Every sentence of a dev or test pair: what no training text may hold."""
    pairs = (*sts_pairs("dev"), *sts_pairs("test"))
    return frozenset(text for pair in pairs for text in (pair.sentence1, pair.sentence2))
