"""What this project's own longer runs gave, kept in outputs/reference: every system with three seeds, on real text and in the world."""

import json
from collections.abc import Sequence
from typing import Literal

import pandas

from cselab.errors import DataError
from cselab.evaluation import compare_methods
from cselab.lab import project_path


def systems(text: Literal["real", "world"]) -> pandas.DataFrame:
    """One row a method and seed: test score of each task and their average, dev score, settings (Spearman x100).

    Raises DataError where outputs/reference/systems has no such rows.
    """
    folder = project_path("outputs/reference/systems")
    files = sorted(folder.glob(f"{text}-*.jsonl"))
    if not files:
        raise DataError(f"no recorded runs {text}-*.jsonl in {folder}; expected the ones that come with the project")
    return pandas.DataFrame([json.loads(line) for path in files for line in path.read_text().splitlines()])


def tables(against: str, only: Sequence[str]) -> dict[str, pandas.DataFrame]:
    """`compare_methods` on either kind of text, by its name: what `views.difference_chart` draws."""
    return {f"{text} text": compare_methods(systems(text), against, only) for text in ("real", "world")}
