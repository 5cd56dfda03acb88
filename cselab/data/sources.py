"""Sources of data: a folder, then the hub, then the files that ship with this project."""

import csv
import fnmatch
import gzip
import itertools
import os
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from cselab.errors import DataError, suggest
from cselab.paths import absolute, check_readable, shipped

LAYOUT = "a data folder holds sts/<task>-<split>.tsv.gz and corpus/<name>.txt.gz"
TABLES = (".tsv", ".csv")
"""Suffixes of tables that are read."""
READERS = {
    **dict.fromkeys((".json", ".jsonl"), "read_json"),
    **dict.fromkeys((".arrow", ".feather"), "read_feather"),
    **dict.fromkeys((".xlsx", ".xls", ".ods"), "read_excel"),
    ".parquet": "read_parquet",
}
"""Suffixes of tables that are not read, and the function of pandas that reads them."""
KINDS = {
    b"%PDF-": "a PDF",
    b"{\\rtf": "an RTF document",
    b"PK\x03\x04": "a zip archive or an Office document",
    b"<!doctype html": "a web page",
    b"<html": "a web page",
    b"<?xml": "XML",
}
"""First bytes, those of HTML in lower case, of files that are often given for a text; other binary
files are refused as not UTF-8."""


@dataclass(frozen=True)
class Source:
    """Where data comes from: its kind, and the path or hub repository."""

    kind: Literal["folder", "hub", "embedded"]
    detail: str

    def __str__(self) -> str:
        return f"{self.kind} ({self.detail})"


def data_folder(folder: str | Path | None = None) -> Path | None:
    """The data folder (data/README.md): the argument, else the variable CSELAB_DATA, else None.

    Raises:
        DataError: If the folder does not exist or may not be read.

    Examples:
        >>> from cselab.data import data_folder
        >>> print(data_folder())  # where CSELAB_DATA is not set
        None
    """
    name = folder or os.environ.get("CSELAB_DATA")
    if not name:
        return None
    path = absolute(name)
    if _list_folder(path) is None:
        setting = "data_dir" if folder else "CSELAB_DATA"
        raise DataError(f"{setting}: no folder {path}; {LAYOUT}")
    return path


def embedded_dir() -> Path:
    """The data that ships with the project: in an installed package, or `data/` of a checkout."""
    return shipped("data")


def shipped_english() -> Path:
    """The real English text that ships, laid out as a data folder (data/README.md)."""
    return embedded_dir() / "english"


def shipped_sentences() -> Path:
    """Parquet of the Wikipedia sentences that ship and of their round trips: sentence, pt."""
    return shipped_english() / "corpus" / "wikipedia-20k.parquet"


def parse_names(names: Any) -> tuple[str, ...]:
    """One or several names or paths of data, as text; anything else is a DataError."""
    atoms = (str, os.PathLike, int, float)  # `-p corpus=2024` is read as a number
    is_list = isinstance(names, Iterable) and not isinstance(names, (*atoms, bytes, Mapping))
    values = list(names) if is_list else [names]
    for value in values:
        if not isinstance(value, atoms) or isinstance(value, bool) or "\0" in str(value):
            raise DataError(f"expected the name or path of data, got {value!r}")
    return tuple(map(str, values))


def parse_name(name: Any) -> str:
    """As `parse_names`, of one; several are an error."""
    return parse_names([name])[0]


def file_suffix(name: str | Path) -> str:
    """The suffix in lower case, before ".gz": ".tsv" of "pairs.TSV.gz"."""
    return os.path.splitext(os.fspath(name).lower().removesuffix(".gz"))[1]


def user_path(name: str) -> Path | None:
    """The path that `name` is; None for a name of data, which has no folder and no known suffix."""
    suffixes = (".txt", ".gz", ".zip", ".pdf", *TABLES, *READERS)
    is_path = os.sep in name or name.lower().endswith(suffixes)
    return Path(os.path.expanduser(name)) if is_path else None


def existing_path(name: str) -> Path | None:
    """The file or folder `name`, if it exists; asked last, for data may have the same name."""
    return Path(name) if os.path.exists(name) else None


def files_by_name(folder: Path, *patterns: str) -> dict[str, Path]:
    """Files by their names without .gz and suffix; those of later patterns come first."""
    paths = [path for pattern in patterns for path in list_files(folder / pattern)]
    return {path.name.removesuffix(".gz").rpartition(".")[0]: path for path in paths}


def list_files(pattern: Path) -> list[Path]:
    """Files of a folder, such as `corpus/*.txt.gz`, sorted; none where there is no folder."""
    names = _list_folder(pattern.parent) or []
    return [pattern.parent / name for name in sorted(fnmatch.filter(names, pattern.name))]


def _list_folder(folder: Path) -> list[str] | None:
    """Names of a folder's files; None where there is no folder."""
    try:
        return os.listdir(folder)
    except PermissionError:  # `Path.glob` would find nothing
        raise DataError(
            f"no permission to read {folder}; ask its owner for it, or use a copy of your own"
        ) from None
    except OSError:
        return None


def find_file(
    name: str,
    folder: str | Path | None,
    *patterns: str,
    kind: str = "corpus",
    also: Sequence[str] = (),
) -> Path:
    """Find the file that a user's name stands for: a path, or a file of the data folder.

    `kind` of file and `also`, other valid names, are for the error's message.
    """
    if path := user_path(name):
        return path
    root = data_folder(folder)
    files = files_by_name(shipped_english(), *patterns)
    files |= files_by_name(root, *patterns) if root else {}
    if path := files.get(name) or existing_path(name):
        return path
    if root is None:
        raise DataError(
            f"{kind} {name!r} is looked for in the data folder; set data_dir or CSELAB_DATA to one "
            f"with {patterns[0].replace('*', '<name>')}, or give "
            f"{' or '.join([*map(repr, also), 'the path of a file'])}"
        )
    raise DataError(f"no {kind} {name!r} in {root}; {suggest(name, [*files, *also])}")


def read_lines(path: str | Path) -> Iterator[str]:
    """Lines of a UTF-8 text file, which may be compressed with gzip, without line ends.

    Only a line feed ends a line: `str.splitlines` would also split at U+2028 and U+0085, which are
    common in text from the web.

    Raises:
        DataError: With file and line, if the file cannot be read or is no UTF-8 text.
    """
    check_readable(path := Path(path))
    number = 0
    try:
        with _open_lines(path) as file:
            for number, line in enumerate(file, 1):
                if b"\0" in line:
                    raise DataError(
                        f"{path}, line {number}: a NUL byte, so no UTF-8; convert UTF-16 with iconv"
                    )
                if number == 1 and b"\r" in line.rstrip() and not line.endswith(b"\n"):
                    raise DataError(
                        f"{path}: lines end with a carriage return alone; save it with line feeds"
                    )
                # Excel begins a UTF-8 file with a byte order mark
                yield line.decode("utf-8-sig" if number == 1 else "utf-8").rstrip("\r\n")
    except UnicodeDecodeError as error:
        byte = error.object[error.start]
        raise DataError(
            f"{path}, line {number}: not UTF-8 (byte 0x{byte:02x}); convert it, e.g. with iconv"
        ) from None
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise DataError(
            f"{path} is truncated or damaged after line {number} ({error}); copy it again"
        ) from None
    except FileNotFoundError:
        raise DataError(f"no file {path}; {LAYOUT}") from None
    except IsADirectoryError:
        raise DataError(f"{path} is a folder; give the path of a file in it") from None
    except OSError as error:
        raise DataError(f"{path} cannot be read ({error.strerror}); check the path") from None


@contextmanager
def _open_lines(path: Path) -> Iterator[Iterable[bytes]]:
    """The file's lines, decompressed."""
    with path.open("rb") as file:
        _refuse_other_formats(path, file.peek(64))
        if path.suffix.lower() == ".gz" or file.peek(2).startswith(b"\x1f\x8b"):
            with gzip.open(file) as unpacked:
                _refuse_other_formats(path, unpacked.peek(64))
                yield unpacked
        else:
            yield file


def _refuse_other_formats(path: Path, head: bytes) -> None:
    starts = head, head[:64].lower()
    kinds = [kind for start, kind in KINDS.items() if any(x.startswith(start) for x in starts)]
    suffix = file_suffix(path)
    if kinds or suffix in READERS:
        reader = f" (pandas.{READERS[suffix]} and to_csv)" if suffix in READERS else ""
        raise DataError(
            f"{path} is {kinds[0] if kinds else f'a {suffix} file'}, not a text; save its "
            f"sentences as .txt, or its table as .csv{reader}, in UTF-8"
        )


def read_table(path: str | Path, columns: Sequence[str]) -> Iterator[tuple[int, dict[str, str]]]:
    """Rows of a table with their line numbers; blank lines are skipped.

    The first line names the columns and shows what separates them: a tab, without quoting (quote
    marks are part of the text), or a comma or semicolon, quoted as the csv module does.

    Raises:
        DataError: For a missing or doubled column, and a row with other cells than the header.
    """
    lines = read_lines(path)
    first = next(lines, "")
    mark = next((mark for mark in "\t,;" if mark in first), "\t")
    whole, reader = itertools.chain([first], lines), None
    if mark != "\t":
        reader = csv.reader((line + "\n" for line in whole), delimiter=mark, strict=True)
    rows = reader or (line.split("\t") for line in whole)
    try:
        header = [name.strip() for name in next(rows)]
        for name in columns:
            if name not in header:
                raise DataError(
                    f"{path}: no column {name!r}; its first line must name {', '.join(columns)}, "
                    "with tabs or commas between"
                )
        if len(set(header)) < len(header):
            name = max(header, key=header.count)
            raise DataError(f"{path}: the column {name!r} is named twice; name each column once")
        for number, row in enumerate(rows, 2):
            if not "".join(row).strip():
                continue
            number = reader.line_num if reader else number
            if len(row) != len(header):
                hint = "write all of them, with nothing in those that are empty"
                if len(row) > len(header):
                    hint = "a tab inside a text must become a space"
                    hint = f"a text with {mark!r} inside needs quote marks" if reader else hint
                raise DataError(
                    f"{path}, line {number}: {len(row)} cells, expected {len(header)} as in the "
                    f"header; {hint}"
                )
            yield number, dict(zip(header, row, strict=True))
    except csv.Error as error:
        raise DataError(
            f"{path}, line {reader.line_num if reader else 0}: {error}; put quote marks around a "
            "text with quote marks, and double those inside"
        ) from None


def check_count(path: str | Path, rows: int, official: int, unit: str = "rows") -> None:
    """Raise DataError for other than the official number of rows."""
    if rows != official:
        raise DataError(
            f"{path} has {rows} {unit}, officially it has {official}; get the official file"
        )
