"""Checks that every loss makes on its inputs."""

from torch import Tensor

from cselab.errors import DataError, SettingsError


def check(temperature: float | None, negatives: int | None, **tensors: Tensor) -> None:
    """Same shapes, a positive temperature, and at least two sentences where others of the batch are the negatives.

    `negatives` is the number of sentences N, or None for a loss that compares pairs only.
    """
    shapes = {name: tuple(tensor.shape) for name, tensor in tensors.items()}
    if len(set(shapes.values())) > 1:
        raise DataError(f"the inputs must have one shape, got {', '.join(f'{name} {s}' for name, s in shapes.items())}")
    if temperature is not None and not temperature > 0:
        raise SettingsError(f"temperature must be above 0, got {temperature}; the papers use 0.05")
    if negatives is not None and negatives < 2:
        raise DataError(f"a batch of {negatives} has no negatives; give at least 2 sentences")
