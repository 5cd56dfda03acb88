"""One progress bar for notebooks, terminals and headless runs."""

import os

from tqdm import tqdm
from tqdm.auto import tqdm as notebook_tqdm


def progress_bar(name: str, total: int | None, unit: str = "step", *, delay: float = 0.0) -> tqdm:
    """A tqdm progress bar: a widget in JupyterLab, plain text in a headless run.

    (The report of a headless run would show a widget frozen at 0 %.)
    """
    headless = "CSELAB_RUN_DIR" in os.environ
    return (tqdm if headless else notebook_tqdm)(
        total=total,
        desc=name,
        unit=unit,
        mininterval=5 if headless else 0.2,
        dynamic_ncols=not headless,
        ncols=100,
        delay=delay,
        position=0 if headless else None,  # a bar within a bar would move the cursor; a page cannot
    )
