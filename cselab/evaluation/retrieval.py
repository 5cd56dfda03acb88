"""Caption retrieval: find the other captions of a scene by its first one."""

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np

from cselab.errors import DataError
from cselab.evaluation.sts import unit_rows
from cselab.models.texts import as_sentences


class RetrievalScore(NamedTuple):
    """Percentages of the scenes (0 to 100); see `caption_retrieval`.

    Attributes:
        accuracy_at_1: The nearest caption is of the same scene.
        strict_accuracy: The k nearest captions are exactly the other captions of the scene.
        k: Number of captions per scene, minus the query.
    """

    accuracy_at_1: float
    strict_accuracy: float
    k: int


def caption_retrieval(
    encode: Callable[[list[str]], Any], scenes: Iterable[Iterable[str]]
) -> RetrievalScore:
    """Search with the first caption of each scene for the scene's other captions, by cosine.

    The candidates of a query are all captions of all scenes except the query. With five captions
    per scene, the strict score is BeLLM's strict accuracy in the top 4 (Li and Li 2024, section
    5.4, https://arxiv.org/abs/2311.05296). A tie with a caption of another scene is a miss; copies
    of a caption, which have the vector of the first one, tie.

    Args:
        encode: List of n strings -> (n, d); called once, with all captions in their order.
        scenes: Groups of equal size; the first caption of each group is the query.

    Raises:
        DataError: For fewer than two scenes, fewer than two captions each, unequal groups, and bad
            vectors.

    Examples:
        >>> from cselab.evaluation import caption_retrieval
        >>> scenes = [["a dog", "the dog", "one dog"], ["a cat", "the cat", "my big cat"]]
        >>> letters = lambda captions: [[text.count(x) for x in "dog cat"] for text in captions]
        >>> score = caption_retrieval(letters, scenes)
        >>> score.accuracy_at_1, score.strict_accuracy, score.k
        (100.0, 100.0, 2)
    """
    groups = [as_sentences(scene, "a scene") for scene in scenes]
    sizes = {len(scene) for scene in groups}
    if len(groups) < 2 or len(sizes) != 1 or min(sizes) < 2:
        raise DataError(
            "retrieval needs at least 2 scenes with the same number of captions, 2 or more; got "
            f"{len(groups)} scenes with {', '.join(map(str, sorted(sizes))) or 'no'} captions"
        )
    size = sizes.pop()
    captions = [caption for scene in groups for caption in scene]
    unit = unit_rows(encode(captions), len(captions))
    first_copy: dict[str, int] = {}
    unit = unit[[first_copy.setdefault(caption, i) for i, caption in enumerate(captions)]]
    scene_of: np.ndarray = np.repeat(np.arange(len(groups)), size)
    first_captions = np.arange(0, len(unit), size)
    first = strict = 0
    for start in range(0, len(first_captions), 1024):  # 1024 rows of similarities in memory
        queries = first_captions[start : start + 1024]
        # rounded, so that equal directions tie
        similar = (unit[queries] @ unit.T).round(12)
        same = scene_of[queries][:, None] == scene_of
        others = np.where(same, -np.inf, similar).max(1)
        same[np.arange(len(queries)), queries] = False
        same_scene = np.where(same, similar, np.nan)
        first += int((np.nanmax(same_scene, 1) > others).sum())
        strict += int((np.nanmin(same_scene, 1) > others).sum())
    return RetrievalScore(100 * first / len(groups), 100 * strict / len(groups), size - 1)
