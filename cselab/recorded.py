"""What this project's own longer runs gave, kept in outputs/reference: every system with three seeds, on real text and in the world."""

import json
from collections.abc import Sequence
from fnmatch import fnmatch
from typing import Literal

import pandas

from cselab.errors import DataError
from cselab.evaluation import compare_seeds
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


def compared(rows: pandas.DataFrame, against: str, only: Sequence[str] = ("*",)) -> pandas.DataFrame:
    """Methods (rows, in the order of the study) by average, sd over seeds, number of seeds, and the paired difference from `against`
    with its 95 % t interval over seeds (NaN with fewer than three).

    only: names of methods, * and ? as in a shell. Raises DataError where `against` has no rows.
    """
    if against not in set(rows.method):
        raise DataError(f"no rows of {against!r} to compare with; there are {', '.join(dict.fromkeys(rows.method))}")
    averages, table = rows.pivot_table(index="seed", columns="method", values="average"), {}
    for method in dict.fromkeys(rows.method):
        if method == against or any(fnmatch(method, one) for one in only):
            mine = averages[method].dropna()
            table[method] = {"average": mine.mean(), "sd": mine.std(), "seeds": len(mine)}
            both = averages[[method, against]].dropna() if method != against else pandas.DataFrame()
            if len(both) > 2:
                found = compare_seeds(both[method], both[against])
                table[method] |= {"difference": found.mean, "low": found.low, "high": found.high}
    columns = ["average", "sd", "seeds", "difference", "low", "high"]
    return pandas.DataFrame.from_dict(table, orient="index", columns=columns).astype({"seeds": int})


def tables(against: str, only: Sequence[str]) -> dict[str, pandas.DataFrame]:
    """`compared` on either kind of text, by its name: what `views.difference_chart` draws."""
    return {f"{text} text": compared(systems(text), against, only) for text in ("real", "world")}
