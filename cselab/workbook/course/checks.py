"""Checks of the notebooks' exercises: an answer is right, or the reader learns what is wrong."""

import copy
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import torch
from torch import Tensor

from cselab.errors import SettingsError, suggest

EXERCISES: dict[str, Callable[..., str]] = {}
"""Checks by name ("02.1" is the first of notebook 02): functions of the answer, and of what else
`check` is given by name, that raise `Wrong` or return a sentence on the right answer."""


class Wrong(Exception):
    """An answer that is not right. The message says what is wrong and where to look."""


class NotDone(Exception):
    """An answer that is still the starter's."""


@dataclass(frozen=True)
class Verdict:
    """Result of a check; true only for a right answer.

    Attributes:
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


def check(name: str, answer: Any, **context: Any) -> Verdict:
    """Check the answer to an exercise; an error in a reader's code is a verdict, not a traceback.

    Args:
        answer: A number, a function or a text; None and dots are "to do".
        **context: Further inputs of the check, such as the lab.

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


@dataclass(frozen=True)
class Number:
    """Check of a number.

    Attributes:
        shows: Sentence on the right answer.
        within: Tolerance.
        mistakes: Numbers that a wrong answer may be, by the sentence that says what is wrong.
    """

    expected: float
    shows: str
    within: float = 0.5
    mistakes: Mapping[str, float] = field(default_factory=dict)

    def __call__(self, answer: float) -> str:
        answer = float(answer)
        if abs(answer - self.expected) <= self.within:
            return self.shows
        apart = {sentence: abs(answer - number) for sentence, number in self.mistakes.items()}
        nearest = min(apart, key=apart.__getitem__, default="")
        if nearest and apart[nearest] <= self.within:
            raise Wrong(nearest)
        raise Wrong(f"{answer:.4g} is too {'high' if answer > self.expected else 'low'}.")


@dataclass(frozen=True)
class Function:
    """Check of a reader's function against the library's.

    Attributes:
        inputs: Arguments of each call.
        shows: Sentence on the right answer.
        mistakes: Functions that a wrong answer may equal, by the sentence that says what is wrong.
    """

    expected: Callable
    inputs: Sequence[tuple]
    shows: str
    mistakes: Mapping[str, Callable] = field(default_factory=dict)

    def __call__(self, answer: Callable) -> str:
        for arguments in self.inputs:
            found = answer(*copy.deepcopy(arguments))  # which it may change in place
            if found is None or found is ...:
                raise NotDone
            found, expected = torch.as_tensor(found), torch.as_tensor(self.expected(*arguments))
            if _equal(found, expected):
                continue
            for sentence, mistake in self.mistakes.items():
                if _equal(found, torch.as_tensor(mistake(*arguments))):
                    raise Wrong(sentence)
            raise Wrong(_difference(found, expected))
        return self.shows


def randn(*shape: int, seed: int = 0) -> Tensor:
    """Normal numbers that are the same in every session."""
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def _equal(a: Tensor, b: Tensor) -> bool:
    return a.shape == b.shape and torch.allclose(a.double(), b.double(), rtol=1e-4, atol=1e-5)


def _shape(x: Tensor) -> str:
    return str(tuple(x.shape)) if x.ndim else "() (one number)"


def _difference(found: Tensor, expected: Tensor) -> str:
    if found.shape != expected.shape:
        return f"Your result has shape {_shape(found)}, expected {_shape(expected)}."
    if found.ndim == 0:
        return f"Your result is {found.item():.4f}, expected {expected.item():.4f}."
    apart = (found - expected).abs().masked_fill(found == expected, 0)  # inf - inf is no number
    index = tuple(int(i) for i in torch.unravel_index(apart.argmax(), found.shape))
    values = f"{found[index].item():.4f}, expected {expected[index].item():.4f}"
    return f"Your result differs most at {list(index)}: {values}."
