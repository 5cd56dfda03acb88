"""A class's leaderboard: methods scored over seeds beside SimCSE, a file that grows by rows."""

import csv
import functools
from pathlib import Path

import pandas
from filelock import FileLock

from cselab.errors import DataError, suggest
from cselab.evaluation.significance import compare_seeds
from cselab.paths import replacing

COLUMNS = ["name", "method", "seeds", "average", "sd", "difference", "low", "high", "against"]

NUMBERS = COLUMNS[2:-1]
_say_once = functools.cache(print)


def table_over_seeds(table: pandas.DataFrame, against: str) -> pandas.DataFrame:
    """A row a method: mean and standard deviation over seeds, and the difference from a baseline.

    The paired difference has its 95 % interval (`compare_seeds`).

    Args:
        table: Scores (Spearman x100) of `Lab.over_seeds`: a row a seed, a column a method.
        against: The baseline's column.

    Raises:
        DataError: For fewer than three seeds, or without a column `against`.

    Examples:
        >>> import pandas
        >>> from cselab.workbook.course import table_over_seeds
        >>> scores = pandas.DataFrame({"SimCSE": [70.0, 71.0, 70.5], "hinge": [72.0, 72.5, 73.0]})
        >>> table_over_seeds(scores, "SimCSE").loc["hinge"].round(2).to_dict()
        {'seeds': 3.0, 'average': 72.5, 'sd': 0.5, 'difference': 2.0, 'low': 0.76, 'high': 3.24}
    """
    if against not in table:
        raise DataError(f"no scores of {against!r}; the methods are {', '.join(table)}")
    rows = {}
    for method in table:
        row = {"seeds": len(table), "average": table[method].mean(), "sd": table[method].std()}
        if method != against:
            found = compare_seeds(table[method], table[against])
            row |= {"difference": found.mean, "low": found.low, "high": found.high}
        rows[method] = row
    return pandas.DataFrame.from_dict(rows, orient="index").rename_axis("method")


def enter(
    path: str | Path, name: str, table: pandas.DataFrame, method: str, against: str = "SimCSE"
) -> pandas.DataFrame:
    """Write a method's row to a leaderboard and return the whole, the largest difference first.

    Args:
        path: A CSV file, which is made if it does not exist.
        name: Of a person or team; its second entry with the same method replaces the first.
        table: As in `table_over_seeds`, with a column `method` and one `against`.

    Raises:
        DataError: For an empty name or a method without scores, and as `table_over_seeds`.

    Examples:
        >>> import pandas
        >>> from cselab.workbook.course import enter
        >>> scores = pandas.DataFrame({"SimCSE": [70.0, 71.0, 70.5], "hinge": [72.0, 72.5, 73.0]})
        >>> board = enter("board.csv", "team A", scores, "hinge")
        >>> board[["name", "method", "difference"]]
             name method  difference
        0  team A  hinge         2.0
    """
    name = " ".join(name.split())
    if not name:
        raise DataError("name: expected yours or your team's; got an empty text")
    if method not in table:
        raise DataError(f"no scores of {method!r}; {suggest(method, table)}")
    if method == against:
        raise DataError(f"{method!r} is the baseline itself; enter another method")
    path, row = Path(path), table_over_seeds(table, against).loc[method]
    entry = pandas.DataFrame(
        [{"name": name, "method": method, **row.to_dict(), "against": against}]
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(f"{path}.lock"):
        board = read(path)
        others = board[(board["name"] != name) | (board["method"] != method)]
        parts = [others, entry, _rows(path)[1]]
        board = pandas.concat([part for part in parts if len(part)])
        with replacing(path) as work:
            board.to_csv(work, index=False)
        return read(path)


def read(path: str | Path) -> pandas.DataFrame:
    """The rows of a leaderboard, the largest difference first; none without the file.

    Raises:
        DataError: For a file that is no leaderboard.

    Examples:
        >>> from cselab.workbook.course import read
        >>> len(read("no-such-board.csv"))
        0
    """
    board, damaged = _rows(path)
    if len(damaged):
        names = ", ".join(map(repr, damaged["name"]))
        _say_once(f"{path}: damaged rows are left out, of {names:.100}; correct or remove them")
    return board.sort_values("difference", ascending=False, ignore_index=True)


def _rows(path: str | Path) -> tuple[pandas.DataFrame, pandas.DataFrame]:
    """The rows of a leaderboard, and the damaged ones as they are written."""
    if not Path(path).is_file():
        return pandas.DataFrame(columns=COLUMNS), pandas.DataFrame(columns=COLUMNS)
    try:
        with Path(path).open(encoding="utf-8-sig", newline="") as file:
            header, *lines = list(csv.reader(file, strict=True)) or [[]]
    except (csv.Error, UnicodeDecodeError):
        header, lines = [], []
    cells = [[*line, *[""] * len(header)][: len(header)] for line in lines if line]
    found = pandas.DataFrame(cells, columns=header, dtype=str)
    if missing := [name for name in COLUMNS if name not in found]:
        lacks = f"it has no column {missing[0]!r}; give another path, or move the file away"
        raise DataError(f"{path} is no leaderboard, or damaged: {lacks}")
    numbers = found[NUMBERS].apply(pandas.to_numeric, errors="coerce")
    whole = numbers.notna().all(axis=1)
    return found.assign(**numbers)[whole], found[~whole]
