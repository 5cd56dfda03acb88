"""Further synthetic data: triplets as from NLI, and several captions per scene."""

from collections.abc import Iterator
from random import Random
from typing import NamedTuple

from cselab.data.synthetic.changes import contradict, generalise, shorten
from cselab.data.synthetic.frames import draw_event
from cselab.data.synthetic.pairs import held_out_sentences
from cselab.data.synthetic.realise import describe


class Triplet(NamedTuple):
    """A sentence, one that it entails, and one that it contradicts."""

    anchor: str
    entailed: str
    contradicted: str


def triplets(n: int, seed: int = 0) -> Iterator[Triplet]:
    """Generate `n` distinct triplets, without sentences of the dev and test pairs.

    The entailed sentence has less detail, or a broader word.
    """
    taken, random = held_out_sentences(), Random(f"triplets {seed}")
    seen: set[tuple[str, ...]] = set()
    while len(seen) < n:
        event = draw_event(random)
        if event.negated:  # a negated event does not entail less detail
            continue
        entailed = None if random.random() < 0.6 else generalise(event, random)
        entailed = entailed or shorten(event, random)
        frames = (event, entailed, contradict(event, random))
        texts = tuple(describe(frame, random) for frame in frames)
        if len(set(texts)) == 3 and texts not in seen and not taken & set(texts):
            seen.add(texts)
            yield Triplet(*texts)


def captions(scenes: int, *, of_each: int = 5, seed: int = 0) -> Iterator[tuple[str, ...]]:
    """Generate `of_each` different sentences on each scene, some with less detail than others.

    No two scenes share a sentence, and none is in a dev or test pair.

    Examples:
        >>> from cselab.data.synthetic import captions
        >>> next(captions(1, of_each=2))[1]
        'Five neighbors cleaned two planes.'
    """
    taken, random, done = set(held_out_sentences()), Random(f"captions {seed}"), 0
    while done < scenes:
        event = draw_event(random)
        texts = {
            describe(shorten(event, random) if random.random() < 0.4 else event, random)
            for _ in range(4 * of_each)
        }
        if len(texts) >= of_each and not texts & taken:
            group = tuple(random.sample(sorted(texts), of_each))
            taken |= texts
            done += 1
            yield group
