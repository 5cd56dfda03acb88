"""The errors a user can meet, one line each: what is wrong, what was expected, what to do."""

import difflib
import errno
from collections.abc import Iterable

FULL = (
    "No space left on device",
    "Disk quota exceeded",
    "database or disk is full",
    "PytorchStreamWriter failed writing",
    "PytorchStreamWriter: file write failed",
    "] . unexpected pos ",
)
"""Messages of the system, SQLite and torch for a full disk."""


class CselabError(ValueError):
    """Bad input, in one clear line.

    The command line prints it alone and exits with code 2, a notebook prints it without a
    traceback.

    Examples:
        >>> from cselab import load
        >>> from cselab.errors import CselabError
        >>> try:
        ...     load("tiny-bret")
        ... except CselabError as error:
        ...     print(str(error).partition(" valid")[0])
        model: no 'tiny-bret' here; did you mean 'tiny-bert'?
    """

    def _render_traceback_(self) -> list[str]:
        return [f"{type(self).__name__}: {self}"]  # IPython prints these lines


class SettingsError(CselabError):
    """A setting or parameter is unknown, of the wrong type or out of range."""


class DataError(CselabError):
    """A file, folder or text is missing, truncated or malformed."""


class ModelError(CselabError):
    """A backbone or twin cannot be built from the given files or settings."""


class DivergenceError(CselabError):
    """Training failed: the loss is not finite, or the embeddings collapsed to one point."""


class Stopped(CselabError):
    """A notebook ends before its last cell, as it should; the message says what the rest needs.

    `cselab run` counts it as finished, and its page ends there.
    """


class Interrupted(KeyboardInterrupt):
    """A training was interrupted; the one-line message says where, and how to continue."""

    def _render_traceback_(self) -> list[str]:
        return [str(self)]


def no_space(error: BaseException | None) -> bool:
    """Whether an error, or one that it comes from, is that of a full disk, or of a quota.

    Libraries have types of their own for it, and say it in words alone.
    """
    while error is not None:
        is_errno = isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT)
        if is_errno or any(words in str(error) for words in FULL):
            return True
        error = error.__cause__ or error.__context__
    return False


def nearest(name: str, valid: Iterable[str]) -> str:
    """`did you mean 'x'?` if a valid name is close to `name`, else an empty string."""
    near = difflib.get_close_matches(name, sorted(set(valid)), n=1, cutoff=0.5)
    return f"did you mean {near[0]!r}?" if near else ""


def suggest(name: str, valid: Iterable[str]) -> str:
    """`did you mean 'x'? ` if a valid name is close to `name`, then the valid names."""
    hint = nearest(name, valid)
    return f"{hint} valid: {', '.join(sorted(set(valid)))}".lstrip()
