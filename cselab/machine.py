"""Processors, memory and time of this machine."""

import os
import subprocess
from subprocess import DEVNULL

MALLOC = {
    "MALLOC_TRIM_THRESHOLD_": "4000000000",
    "MALLOC_MMAP_THRESHOLD_": "4000000000",
    "GLIBC_TUNABLES": "glibc.malloc.hugetlb=1",
}
"""Environment variables for processes that train, which glibc reads once, at the start.

They keep the memory of freed tensors: by default, glibc returns large blocks to the system, and
their next use faults them in again, which takes a seventh of the training time of a small model on
a CPU. They also ask for huge pages (Linux's `madvise`), which saves another tenth."""


def cpu_count() -> int:
    """Number of processors that this process may use.

    Batch systems and containers often give a process fewer than the machine has.
    """
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def gpu_names() -> list[str]:
    """Names of the NVIDIA GPUs that this process may use, as CUDA_VISIBLE_DEVICES takes them."""
    names = os.environ.get("CUDA_VISIBLE_DEVICES")
    if names is None:
        command = ["nvidia-smi", "--query-gpu=index", "--format=csv,noheader"]
        try:
            names = ",".join(subprocess.check_output(command, text=True, stderr=DEVNULL).split())
        except (OSError, subprocess.CalledProcessError):  # no driver
            return []
    return [name.strip() for name in names.split(",") if name.strip() not in ("", "-1")]


def clock(seconds: float) -> str:
    """A duration as `0:07`, `12:30` or `1:02:03`."""
    minutes, seconds = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{seconds:02}" if hours else f"{minutes}:{seconds:02}"
