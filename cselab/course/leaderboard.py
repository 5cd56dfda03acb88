"""A class's leaderboard: methods scored over seeds beside SimCSE, a file that grows by rows."""

from pathlib import Path

import pandas
from filelock import FileLock

from cselab.errors import DataError, suggest
from cselab.evaluation import compare_seeds

COLUMNS = ["name", "method", "seeds", "average", "sd", "difference", "low", "high", "against"]


def table_over_seeds(table: pandas.DataFrame, against: str) -> pandas.DataFrame:
    """A row a method: mean and standard deviation over seeds, and the paired difference from
    `against` with its 95 % interval (`compare_seeds`).

    table: scores (Spearman x100), a row a seed, a column a method, as `Lab.over_seeds` gives them.

    Raises DataError for fewer than three seeds, or without a column `against`.
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

    path: of a CSV file, made if it does not exist. name: of who enters; a second entry under the
        same name and method takes the first one's place.

    Raises DataError for an empty name or a method without scores, and as `table_over_seeds` does.
    """
    if not name.strip():
        raise DataError("name: expected yours or your team's; got an empty text")
    if method not in table:
        raise DataError(f"no scores of {method!r}; {suggest(method, table)}")
    path, row = Path(path), table_over_seeds(table, against).loc[method]
    entry = pandas.DataFrame(
        [{"name": name.strip(), "method": method, **row.to_dict(), "against": against}]
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(f"{path}.lock"):
        board = read(path)
        taken = (board["name"] == name.strip()) & (board["method"] == method)
        board = pandas.concat([board[~taken], entry]) if len(board) else entry
        board[COLUMNS].to_csv(path, index=False)
    return read(path)


def read(path: str | Path) -> pandas.DataFrame:
    """The rows of a leaderboard, the largest difference first; none without the file."""
    if not Path(path).is_file():
        return pandas.DataFrame(columns=COLUMNS)
    texts = dict.fromkeys(("name", "method", "against"), str)  # a name may look like a number
    found = pandas.read_csv(path, dtype=texts, keep_default_na=False)
    return found.sort_values("difference", ascending=False, ignore_index=True)
