"""What tests of kept files share: ways in which a file gets damaged, and another user."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest


def flip(path: Path) -> None:
    """Change one bit; the size stays."""
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 4
    path.write_bytes(content)


def cut(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2)


def empty(path: Path) -> None:
    os.truncate(path, 0)


def take_folder(path: Path) -> None:
    """A folder in the file's place."""
    path.unlink()
    path.mkdir()


DAMAGES = {"flip": flip, "cut": cut, "empty": empty, "gone": Path.unlink, "folder": take_folder}


def as_another_user(act: Callable[[], object], answer: Path) -> str:
    """What `act()` returns or raises as the user "nobody", in a process of its own."""
    if os.geteuid() != 0:
        pytest.skip("only root can become another user")
    answer.touch(mode=0o666)
    answer.chmod(0o666)
    child = os.fork()
    if child == 0:
        try:
            os.setgroups([])
            os.setgid(65534)
            os.setuid(65534)
            result = str(act())
        except BaseException as error:
            result = f"{type(error).__name__}: {error}"
        answer.write_text(result)
        os._exit(0)
    os.waitpid(child, 0)
    return answer.read_text()
