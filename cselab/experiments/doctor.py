"""`cselab doctor`: what works on this machine, what does not, and what to do about it.

It imports nothing that may be what is missing.
"""

import importlib.metadata
import os
import platform
import shutil
import sys
import tempfile
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from cselab.errors import CselabError
from cselab.machine import cpu_count
from cselab.paths import absolute

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome")
PIECES = {
    "sts": "STS tests",
    "corpus": "text",
    "transfer": "transfer tasks",
    "nli": "supervised methods",
    "parallel": "translators",
}


class Finding(NamedTuple):
    """What a check of `cselab doctor` found.

    Attributes:
        subject: Subject of the check.
        state: "ok", "missing" (something optional) or "broken".
        found: What was found, in words.
        fix: What to do, "" for ok.
    """

    subject: str
    state: str
    found: str
    fix: str = ""


def examine(outputs: Path) -> Iterator[Finding]:
    """All findings, in order; a check that raises is a finding too.

    Args:
        outputs: The folder that runs are kept in.
    """
    for check in (_python, _packages, _devices, _compiler, _disk, _embedded, _data, _hub, _browser):
        try:
            yield from check(outputs)
        except CselabError as error:  # it says what was expected
            yield Finding(check.__name__[1:], "broken", str(error), "correct it, or unset it")
        except Exception as error:  # whatever is wrong with the machine, the other checks go on
            yield Finding(
                check.__name__[1:],
                "broken",
                f"{type(error).__name__}: {error}",
                "install again: rm -rf .venv && make run",
            )


def _python(_outputs: Path) -> Iterator[Finding]:
    good = sys.version_info >= (3, 11)
    yield Finding(
        "python",
        "ok" if good else "broken",
        f"{platform.python_version()} at {sys.executable}",
        "" if good else "cselab needs Python 3.11 or newer: make PYTHON=/path/to/python3.12",
    )


def _packages(_outputs: Path) -> Iterator[Finding]:
    from packaging.requirements import Requirement

    wanted = [Requirement(text) for text in importlib.metadata.requires("cselab") or ()]
    wanted = [
        requirement for requirement in wanted if requirement.marker is None
    ]  # not those of the tests
    versions, wrong = {}, []
    for requirement in wanted:
        try:
            versions[requirement.name] = importlib.metadata.version(requirement.name)
        except importlib.metadata.PackageNotFoundError:
            wrong.append(f"{requirement.name} is missing")
            continue
        if not requirement.specifier.contains(versions[requirement.name], prereleases=True):
            wrong.append(
                f"{requirement.name} {versions[requirement.name]}, needed {requirement.specifier}"
            )
    shown = ", ".join(
        f"{name} {versions[name]}"
        for name in ("torch", "transformers", "datasets")
        if name in versions
    )
    if wrong:
        yield Finding(
            "packages", "broken", "; ".join(wrong), "pip install -c constraints.txt -e '.[dev]'"
        )
    else:
        yield Finding("packages", "ok", f"{len(wanted)} as needed: {shown}")


def _devices(_outputs: Path) -> Iterator[Finding]:
    import torch

    yield Finding(
        "processor", "ok", f"{cpu_count()} cores, {torch.get_num_threads()} threads for torch"
    )
    if torch.cuda.is_available():
        for i in range(torch.cuda.device_count()):
            facts = torch.cuda.get_device_properties(i)
            yield Finding(
                f"GPU {i}",
                "ok",
                f"{facts.name}, {facts.total_memory / 2**30:.0f} GiB, CUDA {torch.version.cuda}",
            )
    elif torch.backends.mps.is_available():
        yield Finding("GPU", "ok", "Apple's, as device mps")
    else:
        yield Finding(
            "GPU",
            "missing",
            f"torch {torch.__version__} sees none; the profile paper wants one",
            "with an NVIDIA GPU: a driver, and a torch that is not a +cpu build",
        )


def _compiler(_outputs: Path) -> Iterator[Finding]:
    found = next(
        filter(None, map(shutil.which, (os.environ.get("CXX", ""), "g++", "clang++"))), None
    )
    yield (
        Finding("C++ compiler", "ok", found)
        if found
        else Finding(
            "C++ compiler",
            "missing",
            "none; compile=True needs one on a CPU",
            "apt install g++, or leave compile off",
        )
    )


def _disk(outputs: Path) -> Iterator[Finding]:
    where = next(path for path in (outputs, *absolute(outputs).parents) if os.path.lexists(path))
    try:
        tempfile.TemporaryFile(dir=where).close()
    except OSError as error:
        yield Finding(
            "outputs",
            "broken",
            f"{where} cannot be written to ({error.strerror})",
            "choose another: --outputs, or CSELAB_OUTPUTS",
        )
        return
    free = shutil.disk_usage(where).free / 1e9
    enough = free > 2
    yield Finding(
        "outputs",
        "ok" if enough else "broken",
        f"{outputs}, {free:.0f} GB free",
        ""
        if enough
        else "free some: a workbook run keeps about 1 GB, a sweep 20 to 60 MB a tiny training",
    )


def _embedded(_outputs: Path) -> Iterator[Finding]:
    from cselab.data.sources import embedded_dir

    backbones = [
        path.name
        for path in sorted((embedded_dir() / "backbones").iterdir())
        if (path / "config.json").is_file()
    ]
    yield Finding(
        "embedded data", "ok", f"synthetic text, {', '.join(backbones)} in {embedded_dir()}"
    )


def _data(_outputs: Path) -> Iterator[Finding]:
    from cselab.data.sources import LAYOUT, data_folder

    folder = data_folder()
    if folder is None:
        yield Finding(
            "data folder",
            "missing",
            "CSELAB_DATA is not set: tests and text are synthetic",
            f"{LAYOUT}; data/README.md says more",
        )
        return
    there = {piece: len([*(folder / piece).glob("*.gz")]) for piece in PIECES}
    yield Finding(
        "data folder",
        "ok",
        f"{folder}: " + ", ".join(f"{n} in {piece}/" for piece, n in there.items() if n),
    )
    for piece, n in there.items():
        if not n:
            yield Finding(
                f"data: {piece}/",
                "missing",
                f"no files: {PIECES[piece]} will do without",
                f"{LAYOUT}; data/README.md says more",
            )


def _hub(_outputs: Path) -> Iterator[Finding]:
    from cselab.data.hub import is_offline

    address = os.environ.get("HF_ENDPOINT", "https://huggingface.co")
    if is_offline():
        yield Finding(
            "hub",
            "missing",
            "HF_HUB_OFFLINE is set: only what is in its cache is used",
            "fetch what profile paper needs where there is a network (hf download …), or unset it",
        )
        return
    try:
        urllib.request.urlopen(urllib.request.Request(address, method="HEAD"), timeout=5).close()
        yield Finding("hub", "ok", address)
    except (OSError, ValueError) as error:
        reason = getattr(error, "reason", error)
        yield Finding(
            "hub",
            "missing",
            f"{address} does not answer ({reason})",
            "profile paper and hub=True need it; behind a proxy set HTTPS_PROXY",
        )


def browser() -> str | None:
    """Path of the installed browser that the tests and the figures open, or None."""
    return next(filter(None, map(shutil.which, BROWSERS)), None)


def _browser(_outputs: Path) -> Iterator[Finding]:
    found = browser()
    yield (
        Finding("browser", "ok", found)
        if found
        else Finding(
            "browser",
            "missing",
            "none; the browser tests are skipped",
            "apt install chromium, or your system's equivalent",
        )
    )
