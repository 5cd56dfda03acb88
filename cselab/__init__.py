"""cselab: a research workbook for contrastive sentence embeddings.

See README.md and notebooks/00_start_here.ipynb.
"""

from typing import Any

__version__ = "0.1.0"


def open_lab(notebook: str, **parameters: Any):
    """Set up a notebook and return its lab; see `cselab.experiments.open_lab`.

    Imported late, so that the command line is quick.
    """
    from cselab.experiments.lab import open_lab
    from cselab.plots.theme import use_theme

    use_theme()
    return open_lab(notebook, **parameters)


def load(folder: Any, *, pooling: str | None = None):
    """Load an encoder: one saved or exported here, a model of sentence-transformers, or a stock
    model of transformers; see `cselab.models.load`."""
    from cselab.models import load

    return load(folder, pooling=pooling)
