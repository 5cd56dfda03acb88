"""Parallel text: sentences in two languages, line by line."""

from pathlib import Path
from typing import NamedTuple

from cselab.data.sources import data_folder, read_lines
from cselab.errors import DataError, suggest


class Parallel(NamedTuple):
    """Two languages and the (source, target) sentences."""

    languages: tuple[str, str]
    pairs: list[tuple[str, str]]


def load_parallel(name: str, *, folder: str | Path | None = None) -> Parallel:
    """`parallel/<name>.tsv.gz` of the data folder: a first line with the two languages, then a pair a line.

    Raises DataError for no data folder, an unknown name, a malformed file and one without pairs.
    """
    where = data_folder(folder)
    if where is None:
        raise DataError("parallel text comes from a data folder; set data_dir or CSELAB_DATA to one with parallel/")
    there = sorted(path.name.removesuffix(".tsv.gz") for path in (where / "parallel").glob("*.tsv.gz"))
    if name not in there:
        raise DataError(f"no parallel text {name!r} in {where / 'parallel'}; {suggest(name, there)}")
    path = where / "parallel" / f"{name}.tsv.gz"
    rows = []
    for number, line in enumerate(read_lines(path), 1):
        cells = tuple(cell.strip() for cell in line.split("\t"))
        if len(cells) != 2 or not all(cells):
            raise DataError(f"{path}, line {number}: expected a sentence, a tab and its translation, got {line[:60]!r}")
        rows.append(cells)
    if len(rows) < 2:
        raise DataError(f"{path} has no pairs below its line of languages")
    return Parallel(rows[0], rows[1:])
