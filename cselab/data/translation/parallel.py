"""Parallel text: sentence pairs in two languages."""

from pathlib import Path
from typing import NamedTuple

from cselab.data.sources import find_file, parse_name, read_table
from cselab.errors import DataError


class Parallel(NamedTuple):
    """The two languages, and (source, target) sentence pairs."""

    languages: tuple[str, str]
    pairs: list[tuple[str, str]]


def load_parallel(name: str | Path, *, folder: str | Path | None = None) -> Parallel:
    """Load `parallel/<name>.tsv.gz` of a data folder: a header of the two languages, then pairs.

    Raises:
        DataError: For no data folder, an unknown name, a malformed file and one without pairs.
    """
    path = find_file(parse_name(name), folder, "parallel/*.tsv.gz", kind="parallel text")
    languages, pairs = ("", ""), []
    for number, row in read_table(path, ()):
        if len(row) != 2 or not all(cell.strip() for cells in row.items() for cell in cells):
            raise DataError(
                f"{path}, line {number}: expected a sentence and its translation, below the names "
                f"of two languages, got {' '.join(row.values())[:60]!r}"
            )
        source, target = row
        languages = source, target
        pairs.append((row[source].strip(), row[target].strip()))
    if not pairs:
        raise DataError(f"{path} has no pairs below its line of languages")
    return Parallel(languages, pairs)
