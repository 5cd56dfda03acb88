"""The stamp of a result: versions, hardware, git commit, a hash of the library's code."""

import functools
import platform
import subprocess
from importlib.metadata import version
from pathlib import Path
from typing import Any

from cselab.experiments.code import PACKAGE, library_hash
from cselab.machine import cpu_count


def environment_stamp(device: Any) -> dict[str, str]:
    """Versions, hardware and code state as flat strings, for result rows and reports."""
    return {
        "python": platform.python_version(),
        **{name: version(name) for name in ("cselab", "torch", "transformers", "datasets")},
        "hardware": _hardware(device),
        "commit": _commit(),
        "source": library_hash(),
    }


def _hardware(device: Any) -> str:
    if device.type == "cuda":
        import torch

        return torch.cuda.get_device_name(device)
    info, name = Path("/proc/cpuinfo"), platform.processor() or platform.machine()
    lines = info.read_text().splitlines() if info.is_file() else []
    models = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return f"{next(iter(models), name)}, {cpu_count()} cores"


@functools.cache
def _commit() -> str:
    """The commit of the library's checkout, `-dirty` if changed; empty outside one."""

    def git(*words: str) -> str:
        options: dict[str, Any] = {"cwd": PACKAGE, "capture_output": True, "timeout": 10}
        return subprocess.run(["git", *words], check=True, text=True, **options).stdout.strip()

    try:
        head = git("rev-parse", "--short=12", "HEAD")
        return f"{head}-dirty" if git("status", "--porcelain", "--", ".") else head
    except (OSError, subprocess.SubprocessError):
        return ""
