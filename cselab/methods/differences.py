"""Where a paper and its released code differ: rows that stand in the method's file.

A preset "released" is a method with all its rows that are a change; each is one setting or a few,
so that it can be switched alone. The page docs/paper-vs-code.md is made of these rows.
"""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

Changes = Mapping[str, Any] | Callable[[Any], Mapping[str, Any]]


class Difference(NamedTuple):
    """One difference between a paper and its released code.

    Attributes:
        name: Name of the row.
        paper: The paper's wording.
        released: The code's.
        here: Which of them is the default.
        change: Settings that turn the default into the other wording, by dotted path, or a function
            of the configuration that gives them.
        roberta: Those for RoBERTa where they differ.
        term: The term that a loss can show the difference in.
        labels: Names of the two sides, where they are not paper and released.
        of: The papers that have the difference, where it is not the method's alone.
        preset: Whether "released" includes the change: a reading of ours, or another choice of the
            paper, is none.
        base: Settings of both sides where the difference shows.
    """

    name: str
    paper: str
    released: str
    here: str
    change: Changes | None = None
    roberta: Mapping[str, Any] | None = None
    term: str = ""
    labels: tuple[str, str] = ("paper", "released")
    of: str = ""
    preset: bool = True
    base: Mapping[str, Any] | None = None

    def changes(self, config: Any, family: str = "bert") -> Mapping[str, Any]:
        """The settings that make `config` the other wording, for a backbone of `family`."""
        if family == "roberta" and self.roberta is not None:
            return self.roberta
        if self.change is None:
            return {}
        return self.change(config) if callable(self.change) else self.change
