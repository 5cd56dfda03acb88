"""What the notebooks are taught with: checks of exercises, a leaderboard, a graded assignment."""

from cselab.workbook.course import exercises  # noqa: F401  (registers the checks)
from cselab.workbook.course.checks import EXERCISES, NotDone, Verdict, Wrong, check
from cselab.workbook.course.grade import Grade, grade
from cselab.workbook.course.leaderboard import enter, read, table_over_seeds
from cselab.workbook.course.map import concept_map
from cselab.workbook.course.published import published
from cselab.workbook.course.words import (
    by_sign,
    compared,
    comparisons,
    guide,
    interval,
    listed,
    notice,
    recorded_relation,
    referee,
    relation,
    reveal,
    signed,
    tests,
    verdict,
)

__all__ = [
    "EXERCISES",
    "Grade",
    "NotDone",
    "Verdict",
    "Wrong",
    "by_sign",
    "check",
    "compared",
    "comparisons",
    "concept_map",
    "enter",
    "grade",
    "guide",
    "interval",
    "listed",
    "notice",
    "published",
    "read",
    "recorded_relation",
    "referee",
    "relation",
    "reveal",
    "signed",
    "table_over_seeds",
    "tests",
    "verdict",
]
