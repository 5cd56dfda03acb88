"""Retrieval of the other captions of a scene, strict: only all of them count."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from cselab.errors import DataError
from cselab.evaluation.sts import unit_rows


class RetrievalScore(NamedTuple):
    """Shares x100 of captions: whose nearest is of the same scene; whose k nearest are exactly the scene's others."""

    accuracy_at_1: float
    strict_accuracy: float
    k: int


def caption_retrieval(encode: Callable[[list[str]], Any], scenes: Sequence[Sequence[str]]) -> RetrievalScore:
    """Each caption looks, by cosine, for the other captions of its scene among all captions of all scenes.

    scenes: groups of one size, captions of one scene each; with five a scene the strict score is accuracy@4.
    encode: list of n strings -> (n, d); called once. Ties are lost: a tie with a caption of another scene is a miss.

    Raises DataError for fewer than two scenes, groups of fewer than two or of different sizes, and bad vectors.
    """
    sizes = {len(scene) for scene in scenes}
    if len(scenes) < 2 or len(sizes) != 1 or min(sizes) < 2:
        raise DataError(
            f"retrieval needs at least 2 scenes with the same number of captions, 2 or more; got {len(scenes)} scenes "
            f"with {', '.join(map(str, sorted(sizes))) or 'no'} captions"
        )
    size = sizes.pop()
    k = size - 1
    captions = [caption for scene in scenes for caption in scene]
    unit = unit_rows(encode(captions), len(captions))
    scene_of = np.repeat(np.arange(len(scenes)), size)
    first = strict = 0
    for start in range(0, len(unit), 1024):  # memory: 1024 rows of similarities at a time
        rows = np.arange(start, min(start + 1024, len(unit)))
        similar = unit[rows] @ unit.T
        same = scene_of[rows][:, None] == scene_of
        others = np.where(same, -np.inf, similar).max(1)
        same[np.arange(len(rows)), rows] = False
        own = np.where(same, similar, np.nan)
        first += int((np.nanmax(own, 1) > others).sum())
        strict += int((np.nanmin(own, 1) > others).sum())
    return RetrievalScore(100 * first / len(unit), 100 * strict / len(unit), k)
