"""Folders of saved encoders: written atomically, described by a card (cselab.json)."""

import errno
import json
import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from cselab.errors import ModelError
from cselab.seals import share

CARD = "cselab.json"
RUST_ERROR = re.compile(r"\(os error (\d+)\)")
"""How safetensors and tokenizers end the message of an error of the system."""


def check_folder(folder: str | Path) -> list[Path]:
    """Files of the saved encoder in `folder`, which `new_folder` would replace; relative paths.

    Raises:
        ModelError: If it holds something else, or cannot be written.
    """
    final = _resolved(folder)
    with _one_line(final):
        own = _own_files(final) if final.exists() else []
        place = next(path for path in (final, *final.parents) if path.exists())
        if not place.is_dir():
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR))
        if not os.access(place, os.W_OK | os.X_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
    return own


@contextmanager
def new_folder(folder: str | Path) -> Iterator[Path]:
    """A temporary folder whose files are in `folder` when the block ends without an error.

    It owns these files and no others, and lists them in its card: over a saved encoder, exactly the
    files of that one are replaced, and what a user put beside them stays.

    Raises:
        ModelError: Before anything is changed, if `folder` holds something else; and if it cannot
            be written.
    """
    own, final = check_folder(folder), _resolved(folder)
    with _one_line(final):
        exists = final.exists()
        place = final if exists else final.parent  # of one file system
        place.mkdir(parents=True, exist_ok=True)
        work = Path(tempfile.mkdtemp(dir=place, prefix=".cselab-"))
    try:
        with _one_line(final):
            new = work / "new"
            new.mkdir()
            yield new
            share(new)
            written = [path.relative_to(new) for path in new.rglob("*") if path.is_file()]
            if (card := new / CARD).is_file():
                files = sorted(path.as_posix() for path in written)
                card.write_text(json.dumps({**json.loads(card.read_text()), "files": files}))
            if exists:
                _exchange(final, own, work / "old", written, new)
            else:
                os.replace(new, final)
    finally:
        shutil.rmtree(work, ignore_errors=True)


def _exchange(final: Path, own: list[Path], old: Path, written: list[Path], new: Path) -> None:
    """Move own files from `final` to `old` and written ones from `new` to `final`, or none."""
    if taken := [path for path in written if path not in own and os.path.lexists(final / path)]:
        raise ModelError(
            f"{final / taken[0]} is in the way, and no saved encoder wrote it; move it, or choose "
            "another folder"
        )
    # the card goes first and comes last: in between, the folder is no encoder
    moves = [(final / path, old / path) for path in sorted(own, key=lambda p: p.name != CARD)]
    moves += [(new / path, final / path) for path in sorted(written, key=lambda p: p.name == CARD)]
    done = []
    try:
        for source, target in moves:
            target.parent.mkdir(parents=True, exist_ok=True)
            os.replace(source, target)
            done.append((source, target))
    except BaseException:
        for source, target in reversed(done):
            os.replace(target, source)
        raise
    finally:
        folders = {parent for path in (*own, *written) for parent in path.parents[:-1]}
        for parent in sorted(folders, reverse=True):
            with suppress(OSError):  # not empty
                (final / parent).rmdir()


def _own_files(final: Path) -> list[Path]:
    """The files that a saved encoder has put into a folder; none in an empty one.

    Raises ModelError for a folder that holds something else, and for a file.
    """
    if final.is_dir() and not any(final.iterdir()):
        return []
    try:
        own = {Path(name) for name in json.loads((final / CARD).read_text())["files"]}
    except (OSError, ValueError, KeyError, TypeError) as error:
        older = " that lists its files (older versions do not)" if type(error) is KeyError else ""
        raise ModelError(
            f"{final} exists and is no saved encoder{older}, so it is not replaced; choose another "
            "folder, or an empty one"
        ) from None
    # a card may come from anywhere: what it lists outside of the folder is not found here
    found = (path.relative_to(final) for path in final.rglob("*") if not path.is_dir())
    return [path for path in found if path in own]


def _resolved(folder: str | Path) -> Path:
    """The folder itself: behind links, and not "."."""
    return Path(os.path.realpath(Path(folder).expanduser()))


@contextmanager
def _one_line(final: Path) -> Iterator[None]:
    """Raise ModelError for an error of the system: a full disk, a folder without permission."""
    try:
        yield
    except Exception as caught:
        error = caught.__cause__ or caught  # of a folder within this one
        reason = error.strerror if isinstance(error, OSError) else None
        if found := RUST_ERROR.search(str(error)):
            reason = os.strerror(int(found[1]))
        if not reason:
            raise
        raise ModelError(f"cannot write {final} ({reason}); choose another folder") from error


def write_card(folder: Path, kind: str, **fields: Any) -> None:
    """Write the kind of encoder that a folder holds, and the arguments to build it."""
    (folder / CARD).write_text(json.dumps({"kind": kind, **fields}))


def read_card(folder: str | Path, kind: str, writer: str, *fields: str) -> list[Any]:
    """Values of `fields` in the card of a folder.

    Args:
        folder: Where the card is.
        kind: The kind of encoder that it must be.
        writer: The class whose save_pretrained should have written the folder, for the error.
        *fields: Names of values in the card.

    Raises:
        ModelError: If the folder holds no card, a damaged one, or that of another kind.
    """
    card = open_card(folder, f"{writer}.save_pretrained")
    if card["kind"] != kind:
        raise ModelError(
            f"{folder} holds a {card['kind']}: expected a folder that {writer}.save_pretrained "
            "wrote"
        )
    try:
        return [card[field] for field in fields]
    except KeyError as error:
        raise _damaged(folder, error) from None


def open_card(folder: str | Path, writer: str) -> dict[str, Any]:
    """The whole card of a folder, with its `kind`.

    Args:
        folder: Where the card is.
        writer: The function that should have written the folder, for the error.

    Raises:
        ModelError: If there is no card, or a damaged one.
    """
    path = Path(folder) / CARD
    if not path.is_file():
        raise ModelError(f"no {CARD} in {folder}: expected a folder that {writer} wrote")
    try:
        card = json.loads(path.read_text())
        return {**card, "kind": card["kind"]}
    except (json.JSONDecodeError, KeyError, TypeError) as error:
        raise _damaged(folder, error) from None


def _damaged(folder: str | Path, error: Exception) -> ModelError:
    return ModelError(
        f"{Path(folder) / CARD} is damaged ({type(error).__name__}: {error}); save the encoder "
        "again"
    )
