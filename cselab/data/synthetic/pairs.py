"""Synthetic STS pairs: a meaning and a changed one, rated by a rule, tagged with the change."""

import functools
from collections import Counter
from collections.abc import Iterator
from random import Random
from typing import NamedTuple

from cselab.data.synthetic.changes import CHANGES, change_detail
from cselab.data.synthetic.frames import Event, draw_event, draw_market
from cselab.data.synthetic.realise import describe, nominalise
from cselab.data.synthetic.similarity import similarity

PAIRS = 1500
AT_MOST = (220, 100, 75, 55, 55)
"""Largest number of pairs of one tag in each fifth of the scale, so that a tag does not determine
the rating; every fifth has the same number of pairs."""
SEEDS = {"dev": 1_000_001, "test": 1_000_002}


class StsPair(NamedTuple):
    """Two sentences, their rating (0 to 5), and a tag: the change between them."""

    sentence1: str
    sentence2: str
    score: float
    tag: str


@functools.cache
def sts_pairs(split: str) -> tuple[StsPair, ...]:
    """The 1,500 pairs of "dev" or "test", equal on every machine; the splits share no sentence."""
    taken: set[str] = set()
    if split == "test":
        taken = {text for pair in sts_pairs("dev") for text in (pair.sentence1, pair.sentence2)}
    pairs: list[StsPair] = []
    fifths: Counter[int] = Counter()
    tags: Counter[tuple[str, int]] = Counter()
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
    # for nominalisations only: no corpus has any, so that this paraphrase is new to every model
    random_nominal = Random(0)
    while True:
        for tag, change in CHANGES.items():
            second = None
            # None: the event has no broader word, no opposite, or no roles that can be swapped
            while second is None:
                market = tag in ("number", "antonym") and random.random() < 0.1
                first = draw_market(random) if market else draw_event(random)
                second = change(first, random)
            if isinstance(second, Event) and isinstance(first, Event) and tag != "unrelated":
                # further changes, so that a tag does not determine the rating
                for _ in range(random.choice((0, 0, 1, 2))):
                    second = change_detail(second, random)
            score = round(similarity(first, second), 2)
            sentence1 = describe(first, random, plain=tag == "synonym")
            sentence2 = describe(second, random)
            if isinstance(second, Event) and tag == "paraphrase" and random_nominal.random() < 0.5:
                sentence2 = nominalise(second, random_nominal) or sentence2
            if random.random() < 0.5:
                sentence1, sentence2 = sentence2, sentence1
            yield StsPair(sentence1, sentence2, score, tag)


@functools.cache
def held_out_sentences() -> frozenset[str]:
    """All sentences of the dev and test pairs, which no training text may contain."""
    pairs = (*sts_pairs("dev"), *sts_pairs("test"))
    return frozenset(text for pair in pairs for text in (pair.sentence1, pair.sentence2))
