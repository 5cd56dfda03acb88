"""Checks of the notebooks' exercises: an answer is right, or the reader learns what is wrong."""

import copy
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor

from cselab.errors import SettingsError, suggest

EXERCISES: dict[str, Callable[..., str]] = {}


class Wrong(Exception):
    """An answer that is not right. The message says what is wrong and what to look at."""


class NotDone(Exception):
    """An answer that is still the starter's."""


@dataclass(frozen=True)
class Verdict:
    """What a check found. True only for a right answer.

    Attributes:
        exercise: Name of the exercise.
        state: "right", "not right yet" or "to do".
        message: What is wrong, or what the right answer shows.

    Examples:
        >>> from cselab.workbook.course import Verdict
        >>> verdict = Verdict("02.1", "not right yet", "Your result has shape (2, 2).")
        >>> verdict
        Exercise 02.1: not right yet. Your result has shape (2, 2).
        >>> bool(verdict)
        False
    """

    exercise: str
    state: Literal["right", "not right yet", "to do"]
    message: str

    def __bool__(self) -> bool:
        return self.state == "right"

    def __repr__(self) -> str:
        return f"Exercise {self.exercise}: {self.state}. {self.message}"

    def _repr_markdown_(self) -> str:
        mark = {"right": "✓", "not right yet": "✗", "to do": "…"}[self.state]
        return f"{mark} **Exercise {self.exercise}: {self.state}.** {self.message}"


def exercise(name: str) -> Callable:
    """Register the check of an exercise.

    The check gets the answer, and what else `check` is given by name. It raises `Wrong`, or
    returns a sentence on what the right answer shows.

    Args:
        name: Name of the exercise, "02.1" for the first of notebook 02.

    Examples:
        >>> from cselab.workbook.course import EXERCISES, Wrong, check, exercise
        >>> @exercise("99.1")
        ... def two(answer):
        ...     if answer != 2:
        ...         raise Wrong("Count again.")
        ...     return "One and one."
        >>> check("99.1", 3)
        Exercise 99.1: not right yet. Count again.
        >>> check("99.1", 2)
        Exercise 99.1: right. One and one.
        >>> two is EXERCISES.pop("99.1")  # there is no notebook 99
        True
    """

    def add(function: Callable[..., str]) -> Callable[..., str]:
        EXERCISES[name] = function
        return function

    return add


def check(name: str, answer: Any, **context: Any) -> Verdict:
    """Check the answer to an exercise; an error in a reader's code is a verdict, not a traceback.

    Args:
        name: Name of the exercise, such as "02.1".
        answer: A number, a function or a text; None and dots are "to do".
        **context: What its check reads besides, such as the lab.

    Raises:
        SettingsError: For an exercise that does not exist.

    Examples:
        >>> from cselab.workbook.course import check
        >>> check("02.1", lambda a, b, temperature: ...)
        Exercise 02.1: to do. Replace the dots, and run the cell again.
    """
    if name not in EXERCISES:
        raise SettingsError(f"no exercise {name!r}; {suggest(name, EXERCISES)}")
    to_do = Verdict(name, "to do", "Replace the dots, and run the cell again.")
    if answer is None or answer is ...:
        return to_do
    try:
        return Verdict(name, "right", EXERCISES[name](answer, **context))
    except NotDone:
        return to_do
    except Wrong as wrong:
        return Verdict(name, "not right yet", str(wrong))
    except Exception as error:
        return Verdict(name, "not right yet", f"Your code stops: {type(error).__name__}: {error}")


def same_values(
    answer: Callable,
    reference: Callable,
    inputs: Sequence[tuple],
    mistakes: Mapping[str, Callable] | None = None,
) -> None:
    """Compare a reader's function with the library's on some inputs.

    Args:
        answer: The reader's function.
        reference: The library's.
        inputs: Arguments of each call.
        mistakes: Functions that a wrong answer may equal, by the sentence that says what is wrong.

    Raises:
        Wrong: At the first difference.
        NotDone: If the function returns nothing.
    """
    for arguments in inputs:
        found = answer(*copy.deepcopy(arguments))  # which it may change in place
        expected = torch.as_tensor(reference(*arguments))
        if found is None or found is ...:
            raise NotDone
        found = torch.as_tensor(found)
        if found.shape != expected.shape:
            raise Wrong(f"Your result has shape {_shape(found)}, expected {_shape(expected)}.")
        if _close(found, expected):
            continue
        for sentence, mistake in (mistakes or {}).items():
            other = torch.as_tensor(mistake(*arguments))
            if other.shape == found.shape and _close(found, other):
                raise Wrong(sentence)
        raise Wrong(_difference(found, expected))


def same_number(
    answer: float,
    expected: float,
    *,
    within: float,
    mistakes: Mapping[str, float] | None = None,
) -> None:
    """Compare a reader's number with the right one.

    Args:
        answer: The reader's number.
        expected: The right one.
        within: Tolerance.
        mistakes: Numbers that a wrong answer may be, by the sentence that says what is wrong.

    Raises:
        Wrong: For a number that is not within the tolerance.
    """
    answer = float(answer)
    if abs(answer - expected) <= within:
        return
    for sentence, number in (mistakes or {}).items():
        if abs(answer - number) <= within:
            raise Wrong(sentence)
    raise Wrong(f"{answer:.4g} is too {'high' if answer > expected else 'low'}.")


def _close(a: Tensor, b: Tensor) -> bool:
    return torch.allclose(a.double(), b.double(), rtol=1e-4, atol=1e-5)


def _shape(x: Tensor) -> str:
    return str(tuple(x.shape)) if x.ndim else "() (one number)"


def _difference(found: Tensor, expected: Tensor) -> str:
    if found.ndim == 0:
        return f"Your result is {found.item():.4f}, expected {expected.item():.4f}."
    apart = (found - expected).abs().masked_fill(found == expected, 0)  # inf - inf is no number
    place = tuple(int(i) for i in torch.unravel_index(apart.argmax(), found.shape))
    return (
        f"Your result differs most at {list(place)}: {found[place].item():.4f}, expected "
        f"{expected[place].item():.4f}."
    )
