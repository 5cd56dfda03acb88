"""The automatic part of the graded assignment "beat SimCSE over five seeds"."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas

from cselab.config import DEFAULT_PROFILE
from cselab.errors import CselabError, SettingsError
from cselab.evaluation.significance import compare_seeds
from cselab.experiments import open_lab
from cselab.methods import load_method_file, registered
from cselab.methods.registry import registered_by
from cselab.workbook.course.leaderboard import table_over_seeds

SEEDS = tuple(range(101, 106))
"""Others than a student is likely to have tuned on."""


@dataclass(frozen=True)
class Line:
    """A line of the rubric, with `points` of at most `of`."""

    criterion: str
    points: int
    of: int
    why: str


@dataclass(frozen=True)
class Grade:
    """Lines of the rubric, and the scores that they are read from; printed as a table.

    Attributes:
        table: Scores (Spearman x100), a row a seed, a column a method.

    Examples:
        >>> import pandas
        >>> from cselab.workbook.course import Grade
        >>> from cselab.workbook.course.grade import Line
        >>> found = Grade([Line("runs", 30, 30, "trained with 5 seeds")], pandas.DataFrame())
        >>> found.points
        30
        >>> print(found)
         30 of  30  runs: trained with 5 seeds
         30 of  30  in all
    """

    lines: list[Line]
    table: pandas.DataFrame

    @property
    def points(self) -> int:
        """The sum of all lines."""
        return sum(line.points for line in self.lines)

    def __str__(self) -> str:
        rows = [(line.points, line.of, f"{line.criterion}: {line.why}") for line in self.lines]
        rows.append((self.points, sum(line.of for line in self.lines), "in all"))
        return "\n".join(f"{points:3} of {of:3}  {text}" for points, of, text in rows)


def grade(
    path: str | Path,
    *,
    seeds: Sequence[int] = SEEDS,
    profile: str = DEFAULT_PROFILE,
    settings: Mapping[str, Any] | None = None,
) -> Grade:
    """Train a student's method and SimCSE over seeds, and grade the method.

    The rubric is that of `docs/how-to/teaching.md`. Equal seeds are paired. A method that cannot be
    trained has a grade: its line says why. SimCSE is trained first: settings or data that it cannot
    be trained with are an error, not a grade.

    Args:
        path: A file that registers one method.
        seeds: At least three.
        settings: Settings of all trainings, such as `steps`.

    Raises:
        SettingsError: For a file that cannot be loaded, registers several methods, or one with the
            name of a baseline; for fewer than three seeds; for settings that are unknown, or an
            argument.
        DataError: For text that SimCSE cannot be trained on.

    Examples:
        >>> from cselab.workbook.course import grade
        >>> grade("hinge.py", seeds=(1, 2))
        Traceback (most recent call last):
            ...
        cselab.errors.SettingsError: seeds: a comparison needs at least 3, got 2
    """
    if len(seeds) < 3:
        raise SettingsError(f"seeds: a comparison needs at least 3, got {len(seeds)}")
    settings = settings or {}
    if taken := {"notebook", "profile", "seed", "seeds"} & settings.keys():
        raise SettingsError(f"settings: {min(taken)} is no setting of all trainings; leave it out")
    lab = open_lab("assignment", profile=profile, seed=seeds[0], **settings)
    name = _registered_by(path)
    baselines = {
        "untrained": lambda lab: lab.pretrained(),
        "SimCSE": lambda lab: lab.train("simcse"),
    }
    if name in baselines:
        raise SettingsError(f"{path}: {name!r} is the baseline's name; give the method another")
    lab.check("simcse")
    table = lab.over_seeds(baselines, seeds)
    try:
        lab.check(name)
        table = table.join(lab.over_seeds({name: lambda lab: lab.train(name)}, seeds))
    except Exception as error:  # of the student's code: a grade, not the end of the class's grading
        reason = str(error)
        if not isinstance(error, CselabError):
            reason = f"{type(error).__name__}: {reason}"
        return Grade([Line("runs", 0, 30, reason)], pandas.DataFrame())
    return Grade(_rubric(table, name), table)


def _rubric(table: pandas.DataFrame, name: str) -> list[Line]:
    start = compare_seeds(table[name], table["untrained"])
    row = table_over_seeds(table[[name, "SimCSE"]], "SimCSE").loc[name]
    interval = f"{row.difference:+.2f}, 95 % interval [{row.low:+.2f}, {row.high:+.2f}]"
    beyond = f"{start.mean:+.2f}, 95 % interval [{start.low:+.2f}, {start.high:+.2f}]"
    return [
        Line("runs", 30, 30, f"trained with {len(table)} seeds"),
        Line("better than the pretrained encoder", 20 * (start.low > 0), 20, beyond),
        Line("mean above SimCSE's", 20 * bool(row.difference > 0), 20, interval),
        Line("the interval of the difference is above zero", 30 * bool(row.low > 0), 30, interval),
    ]


def _registered_by(path: str | Path) -> str:
    module = load_method_file(path)
    names = [name for name in registered_by(path) if registered(name).__module__ == module]
    if len(names) != 1:
        listed = ", ".join(sorted(names)) or "what another file has replaced"
        raise SettingsError(f"{path} registers {listed}; expected exactly one method")
    return names[0]
