"""Where the project's files are, in a checkout and in an installed package."""

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
