"""Where the project's files are, in a checkout and in an installed package; and how one is
replaced."""

import os
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from cselab.errors import DataError

PACKAGE = Path(__file__).resolve().parent
IN_CHECKOUT = {"data": "data", "notebooks": "notebooks", "reference": "outputs/reference"}


def shipped(name: str) -> Path:
    """A folder that ships with the project: "data", "notebooks" or "reference".

    Raises:
        DataError: If it is missing.

    Examples:
        >>> from cselab.paths import shipped
        >>> (shipped("data") / "backbones" / "tiny-bert").is_dir()
        True
    """
    for path in (PACKAGE / f"_{name}", PACKAGE.parent / IN_CHECKOUT[name]):
        if path.is_dir():
            return path
    raise DataError(f"the {name} that ship are missing beside {PACKAGE}; install cselab again")


def project_path(path: str | Path) -> Path:
    """An absolute path: a relative one is relative to the checkout, or, of an installed package, to
    the working folder; for a notebook that was opened in `notebooks/`, to the folder above.

    Args:
        path: Such as "outputs"; "~" is the home.

    Examples:
        >>> from cselab.paths import project_path
        >>> project_path("outputs").name
        'outputs'
    """
    here = Path.cwd()
    root = here.parent if here.name == "notebooks" else here
    if (PACKAGE.parent / "pyproject.toml").is_file():
        root = PACKAGE.parent
    return (root / Path(path).expanduser()).resolve()


@contextmanager
def replacing(target: Path) -> Iterator[Path]:
    """A path beside `target`; what is written there takes its place when the block ends.

    Readers see the old file or the new one, never half of one. If the block raises, the old file
    stays, and nothing is left beside it.

    Args:
        target: The file; its folder exists.

    Examples:
        >>> from pathlib import Path
        >>> from cselab.paths import replacing
        >>> with replacing(Path("scores.txt")) as work:
        ...     _ = work.write_text("72.5")
        >>> Path("scores.txt").read_text()
        '72.5'
    """
    target = target.resolve()  # a link stays a link
    work = target.with_name(f".{target.name}.{uuid.uuid4().hex[:8]}.tmp")
    try:
        yield work
        os.replace(work, target)
    finally:
        work.unlink(missing_ok=True)
