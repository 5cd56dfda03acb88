"""What a result was made with: versions, hardware, git commit, and a hash of the library's own source."""

import functools
import hashlib
import os
import platform
import subprocess
from importlib.metadata import version
from pathlib import Path
from typing import Any

PACKAGE = Path(__file__).resolve().parent
DRAWING = {"views", "batch", "sweep", "cli.py", "doctor.py", "lab.py", "environment.py", "__init__.py", "__main__.py"}
"""Parts whose change cannot change a number; the rest of the source is part of every stage's key."""


def environment_stamp(device: Any) -> dict[str, str]:
    """Versions, hardware and code state as flat strings, for result rows and reports."""
    return {
        "python": platform.python_version(),
        **{name: version(name) for name in ("cselab", "torch", "transformers", "datasets")},
        "hardware": _hardware(device),
        "commit": _commit(),
        "source": source_hash(),
    }


@functools.cache
def source_hash() -> str:
    """Twelve hex digits over the library's Python files that can change a number."""
    digest = hashlib.sha256()
    for path in sorted(PACKAGE.rglob("*.py")):
        if DRAWING.isdisjoint(path.relative_to(PACKAGE).parts):
            digest.update(path.relative_to(PACKAGE).as_posix().encode() + path.read_bytes())
    return digest.hexdigest()[:12]


def _hardware(device: Any) -> str:
    if device.type == "cuda":
        import torch

        return torch.cuda.get_device_name(device)
    model = platform.processor() or platform.machine()
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.is_file():
        names = [
            line.partition(":")[2].strip() for line in cpuinfo.read_text().splitlines() if line.startswith("model name")
        ]
        model = names[0] if names else model
    return f"{model}, {len(os.sched_getaffinity(0)) if hasattr(os, 'sched_getaffinity') else os.cpu_count()} cores"


@functools.cache
def _commit() -> str:
    """The commit of the checkout this library runs from, `-dirty` if changed; empty outside a checkout."""
    try:
        run = functools.partial(subprocess.run, cwd=PACKAGE, capture_output=True, text=True, timeout=10)
        head = run(["git", "rev-parse", "--short=12", "HEAD"])
        if head.returncode:
            return ""
        return head.stdout.strip() + ("-dirty" if run(["git", "status", "--porcelain", "--", "."]).stdout else "")
    except (OSError, subprocess.TimeoutExpired):
        return ""
