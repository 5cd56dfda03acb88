"""What a result was made with: versions, hardware, git commit, a hash of the library's code."""

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
    model = platform.processor() or platform.machine()
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.is_file():
        names = [
            line.partition(":")[2].strip()
            for line in cpuinfo.read_text().splitlines()
            if line.startswith("model name")
        ]
        model = names[0] if names else model
    return f"{model}, {cpu_count()} cores"


@functools.cache
def _commit() -> str:
    """The commit of the checkout that the library runs from, `-dirty` if changed; empty outside
    one."""
    try:
        run = functools.partial(
            subprocess.run, cwd=PACKAGE, capture_output=True, text=True, timeout=10
        )
        head = run(["git", "rev-parse", "--short=12", "HEAD"])
        if head.returncode:
            return ""
        return head.stdout.strip() + (
            "-dirty" if run(["git", "status", "--porcelain", "--", "."]).stdout else ""
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
