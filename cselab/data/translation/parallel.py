"""Parallel text: sentence pairs in two languages."""

from pathlib import Path
from typing import NamedTuple

from cselab.data.sources import data_folder, read_lines
from cselab.errors import DataError, suggest


class Parallel(NamedTuple):
    """The two languages, and (source, target) sentence pairs."""

    languages: tuple[str, str]
    pairs: list[tuple[str, str]]


def load_parallel(name: str, *, folder: str | Path | None = None) -> Parallel:
    """Load `parallel/<name>.tsv.gz` of the data folder: a header of the two languages, then pairs.

    Args:
        name: Name of the file.
        folder: A data folder (data/README.md); None: the variable CSELAB_DATA.

    Raises:
        DataError: For no data folder, an unknown name, a malformed file and one without pairs.
    """
    where = data_folder(folder)
    if where is None:
        raise DataError(
            "parallel text comes from a data folder; set data_dir or CSELAB_DATA to one with "
            "parallel/"
        )
    folder = where / "parallel"
    available = sorted(path.name.removesuffix(".tsv.gz") for path in folder.glob("*.tsv.gz"))
    if name not in available:
        raise DataError(f"no parallel text {name!r} in {folder}; {suggest(name, available)}")
    path = folder / f"{name}.tsv.gz"
    rows = []
    for number, line in enumerate(read_lines(path), 1):
        cells = tuple(cell.strip() for cell in line.split("\t"))
        if len(cells) != 2 or not all(cells):
            raise DataError(
                f"{path}, line {number}: expected a sentence, a tab and its translation, got "
                f"{line[:60]!r}"
            )
        rows.append(cells)
    if len(rows) < 2:
        raise DataError(f"{path} has no pairs below its line of languages")
    return Parallel(rows[0], rows[1:])
