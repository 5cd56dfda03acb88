"""Folders of saved encoders: written atomically, described by a card (cselab.json)."""

import json
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from cselab.errors import ModelError

CARD = "cselab.json"


def check_folder(folder: str | Path) -> bool:
    """Whether `folder` holds a saved encoder, which `new_folder` would replace.

    Raises:
        ModelError: If it holds something else.
    """
    final = Path(folder)
    exists = final.exists() and not (final.is_dir() and not any(final.iterdir()))
    if exists and not (final / CARD).is_file():
        raise ModelError(
            f"{final} exists and is no saved encoder, so it is not replaced; choose another folder"
        )
    return exists


@contextmanager
def new_folder(folder: str | Path) -> Iterator[Path]:
    """A temporary folder that becomes `folder` when the block ends without an error.

    It replaces an empty folder or a saved encoder of that name.

    Raises:
        ModelError: Before anything is changed, if `folder` holds something else.
    """
    final, exists = Path(folder), check_folder(folder)
    final.parent.mkdir(parents=True, exist_ok=True)
    work = Path(tempfile.mkdtemp(dir=final.parent, prefix=f".{final.name}-"))
    new, old = work / "new", work / "old"
    new.mkdir()
    try:
        yield new
        if exists:
            os.replace(final, old)
        try:
            os.replace(new, final)
        except OSError:
            if exists:
                os.replace(old, final)
            raise
    finally:
        shutil.rmtree(work, ignore_errors=True)


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
