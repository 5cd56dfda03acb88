"""Casts and checks of the losses' inputs.

Without the checks, a wrong shape or a mistyped name would give a plausible number.
"""

import torch
from jaxtyping import Float
from torch import Tensor

from cselab.errors import DataError, SettingsError, suggest


def at_least_float32(x: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
    """Cast half precision to float32; leave float32 and float64 as they are.

    Half precision is too coarse for a cosine that is divided by 0.05, and its range is too small
    for a squared norm.
    """
    return x.to(torch.promote_types(x.dtype, torch.float32))


def check_shapes(axes: str, **tensors: Tensor) -> None:
    """Raise DataError unless all tensors have the one shape `axes`.

    In `axes`, such as "2 N d", a number is a fixed size, a letter is any size above 0. The message
    gives all shapes.
    """
    shapes = {name: tuple(tensor.shape) for name, tensor in tensors.items()}
    expected, shape = axes.split(), next(iter(shapes.values()))
    fits = len(shape) == len(expected) and all(
        size == int(axis) if axis.isdigit() else size > 0
        for size, axis in zip(shape, expected, strict=True)
    )
    if not fits or len(set(shapes.values())) > 1:
        got = ", ".join(f"{name} {shape}" for name, shape in shapes.items())
        raise DataError(f"the inputs must have one shape ({', '.join(expected)}), got {got}")


def check_negatives(sentences: int) -> None:
    """Raise DataError for fewer than two sentences: in-batch negatives are other sentences."""
    if sentences < 2:
        raise DataError(f"a batch of {sentences} has no negatives; give at least 2 sentences")


def check_temperature(temperature: float, published: float = 0.05) -> None:
    """Raise SettingsError, with the published value, unless the temperature is above 0."""
    if not temperature > 0:  # also NaN
        raise SettingsError(
            f"temperature must be above 0, got {temperature}; the papers use {published}"
        )


def check_choice(name: str, value: str, valid: tuple[str, ...]) -> None:
    """Raise SettingsError, with the nearest valid value, unless `value` is one of `valid`."""
    if value not in valid:
        raise SettingsError(f"unknown {name} {value!r}; {suggest(value, valid)}")
