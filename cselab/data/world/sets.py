"""Other sets drawn from the world: triplets as of NLI, and several captions of one scene."""

from collections.abc import Iterator
from dataclasses import dataclass
from random import Random

from cselab.data.world.changes import broader, denied, shorter
from cselab.data.world.frames import draw_event
from cselab.data.world.pairs import held_out_sentences
from cselab.data.world.realise import describe


@dataclass(frozen=True)
class Triplet:
    """A sentence, one that follows from it, and one that cannot be true with it."""

    anchor: str
    entailed: str
    contradicted: str


def triplets(n: int, seed: int = 0) -> Iterator[Triplet]:
    """`n` distinct triplets; no sentence of a dev or test pair is in one. Entailed: less said, or a broader word."""
    taken, random, seen = held_out_sentences(), Random(f"triplets {seed}"), set()
    while len(seen) < n:
        event = draw_event(random)
        if event.negated:  # of a negated event less said does not follow
            continue
        follows = shorter(event, random) if random.random() < 0.6 else broader(event, random) or shorter(event, random)
        texts = tuple(describe(frame, random) for frame in (event, follows, denied(event, random)))
        if len(set(texts)) == 3 and texts not in seen and not taken & set(texts):
            seen.add(texts)
            yield Triplet(*texts)


def captions(scenes: int, *, of_each: int = 5, seed: int = 0) -> Iterator[tuple[str, ...]]:
    """For each scene `of_each` different sentences that all describe it, some with less detail than others.

    No two scenes share a sentence, and none is in a dev or test pair.
    """
    taken, random, done = set(held_out_sentences()), Random(f"captions {seed}"), 0
    while done < scenes:
        event = draw_event(random)
        said = {
            describe(shorter(event, random) if random.random() < 0.4 else event, random) for _ in range(4 * of_each)
        }
        if len(said) >= of_each and not said & taken:
            group = tuple(random.sample(sorted(said), of_each))
            taken |= said
            done += 1
            yield group
