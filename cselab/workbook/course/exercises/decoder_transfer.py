"""Checks of notebook 15."""

from collections.abc import Callable

import torch
from torch import Tensor

from cselab.evaluation import caption_retrieval
from cselab.workbook.course.checks import exercise, same_number, same_values


def _captions(vectors: Tensor, size: int) -> list[list[str]]:
    """Names of the rows by scene; equal captions would have one vector."""
    return [[f"{scene} {i}" for i in range(size)] for scene in range(len(vectors) // size)]


@exercise("15.1")
def strict_accuracy_of_captions(answer: Callable[[Tensor, int], float]) -> str:
    """Percentage of first captions whose nearest captions are the rest of their scene."""
    draw = torch.Generator().manual_seed(0)
    inputs = [
        (_scenes(12, size, noise, draw), size) for size, noise in ((5, 0.5), (3, 0.8), (2, 0.6))
    ]

    def strict(vectors: Tensor, size: int) -> Tensor:
        score = caption_retrieval(lambda captions: vectors, _captions(vectors, size))
        return torch.tensor(score.strict_accuracy)

    def of_any(vectors: Tensor, size: int) -> Tensor:
        score = caption_retrieval(lambda captions: vectors, _captions(vectors, size))
        return torch.tensor(score.accuracy_at_1)

    def with_itself(vectors: Tensor, size: int) -> Tensor:
        near = (vectors[::size] @ vectors.T).topk(size - 1).indices // size
        return 100 * (near == torch.arange(len(near))[:, None]).all(1).float().mean()

    def of_every_caption(vectors: Tensor, size: int) -> Tensor:
        similar = (vectors @ vectors.T).fill_diagonal_(-torch.inf)
        near = similar.topk(size - 1).indices // size
        return 100 * (near == torch.arange(len(near))[:, None] // size).all(1).float().mean()

    same_values(
        answer,
        strict,
        inputs,
        {
            "The nearest alone is not enough: all size − 1 have to be of the scene.": of_any,
            "The query is its own nearest caption; leave it out.": with_itself,
            "Only the first caption of a scene is a query.": of_every_caption,
        },
    )
    return "One caption that another scene's caption displaces is enough to lose the whole scene."


def _scenes(count: int, size: int, noise: float, draw: torch.Generator) -> Tensor:
    centres = torch.randn(count, 1, 4, generator=draw)
    captions = centres + noise * torch.randn(count, size, 4, generator=draw)
    return torch.nn.functional.normalize(captions.flatten(0, 1), dim=1)


@exercise("15.2")
def blind_to_the_condition(answer: float) -> str:
    """Equal cosines count half."""
    same_number(
        answer,
        50.0,
        within=1e-6,
        mistakes={
            "It never prefers the wrong one of the two rows either: its cosines are equal.": 0.0,
            "The measure is a percentage.": 0.5,
        },
    )
    return "Its two cosines of a pair are equal, and a tie counts half."
