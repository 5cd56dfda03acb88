"""Folders of the project, in a checkout and in an installed package; the paths that users
type; and how a file is replaced."""

import os
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from cselab.errors import DataError, SettingsError

PACKAGE = Path(__file__).resolve().parent
MODEL_SUFFIXES = (".json", ".txt", ".model", ".spm", ".safetensors", ".bin")
"""Suffixes of a model's configuration, tokenizer and weights."""
POINTER = b"version https://git-lfs.github.com/spec/"
"""Start of the file that Git LFS leaves where it is not installed, or did not pull."""
IN_CHECKOUT = {"data": "data", "notebooks": "notebooks", "reference": "outputs/reference"}
VARIABLES = ("CSELAB_DATA", "CSELAB_OUTPUTS")
"""Environment variables that hold a folder."""
ENDINGS = (".txt", ".tsv", ".csv", ".gz")
"""Endings of files; no name of data has one."""
TRANSLATORS = ("bergamot", "lexical", "opus-mt", "multilingual")


def shipped(name: str) -> Path:
    """A folder that ships with the project: "data", "notebooks" or "reference"."""
    for path in (PACKAGE / f"_{name}", PACKAGE.parent / IN_CHECKOUT[name]):
        if path.is_dir():
            return path
    raise DataError(f"the {name} that ship are missing beside {PACKAGE}; install cselab again")


def project_path(path: str | Path) -> Path:
    """An absolute path: a relative one is relative to the checkout, or, of an installed package, to
    the working folder; for a notebook that was opened in `notebooks/`, to the folder above."""
    here = Path.cwd()
    root = here.parent if here.name == "notebooks" else here
    if (PACKAGE.parent / "pyproject.toml").is_file():
        root = PACKAGE.parent
    return (root / expanded(path)).resolve()


def expanded(path: str | Path) -> Path:
    """The path with "~" replaced by the home folder; SettingsError if the user has none."""
    try:
        return Path(path).expanduser()
    except RuntimeError:
        raise SettingsError(f"{path}: no home folder is known; write the path in full") from None


def absolute(path: str | Path) -> Path:
    """The path from the root: "~" is the home, a relative path is relative to the working folder.

    A link stays a link, for its name may be that of a task.
    """
    return expanded(path).absolute()


def located(text: str, *, folders: bool = False) -> str:
    """A setting's value with its path made absolute, if it is a path and not a name.

    A run may be computed in another process, whose working folder is another.

    Args:
        text: A path, or a name: of data, of a model that ships or is on the hub, of a translator.
        folders: Whether it may be a folder; a folder does not hide a name that ships.
    """
    is_path = text.startswith(("~", ".", os.sep)) or text.lower().endswith(ENDINGS)
    if folders:
        ships = text in TRANSLATORS or (shipped("data") / "backbones" / text).is_dir()
        is_path |= "{pivot}" in text or (os.path.isdir(text) and not ships)
    else:
        is_path |= ("." in text or os.sep in text) and os.path.isfile(text)
    return str(absolute(text)) if is_path else text


@contextmanager
def replacing(target: Path) -> Iterator[Path]:
    """A path beside `target`; what is written there takes its place when the block ends.

    Readers see the old file or the new one, never half of one. If the block raises, the old file
    stays, and nothing is left beside it.
    """
    target = target.resolve()  # a link stays a link
    work = target.with_name(f".{target.name}.{uuid.uuid4().hex[:8]}.tmp")
    try:
        yield work
        os.replace(work, target)
    finally:
        work.unlink(missing_ok=True)


def check_readable(path: str | Path) -> None:
    """Check that a file, or each file of a model in a folder, can be read; a missing one is passed.

    Raises:
        DataError: For a file without permission, and for a pointer that Git LFS left in its place.
    """
    target = Path(path)
    try:
        files = sorted(target.iterdir()) if target.is_dir() else [target]
        read = set(MODEL_SUFFIXES)
        if any(member.suffix == ".safetensors" for member in files):
            read.remove(".bin")  # the same weights
        for member in files:
            if member.is_file() and (member == target or member.suffix in read):
                with member.open("rb") as file:
                    start = file.read(len(POINTER))
                if start == POINTER:
                    raise DataError(
                        f"{member} is a pointer of Git LFS, not the file itself; run `git lfs "
                        "pull` in its repository"
                    )
    except OSError as error:
        raise DataError(
            f"{error.filename or target} cannot be read ({error.strerror}); check its permissions"
        ) from None
