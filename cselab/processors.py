"""How many processors this process may use."""

import os


def cpu_count() -> int:
    """Number of processors that this process may use.

    Batch systems and containers often give a process fewer than the machine has.

    Examples:
        >>> from cselab.processors import cpu_count
        >>> cpu_count() >= 1
        True
    """
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
