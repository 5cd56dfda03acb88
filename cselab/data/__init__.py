"""Data: sources, STS tasks, corpora, synthetic text, round trips and batches.

Names are imported when first used, so that reading a few text files does not wait for torch or
datasets.
"""

import importlib
from typing import Any

_MODULE_OF = {
    "Source": "sources",
    "data_folder": "sources",
    "embedded_dir": "sources",
    "STS7": "sts",
    "StsData": "sts",
    "load_sts": "sts",
    "Corpus": "corpus",
    "load_corpus": "corpus",
    "tokenize_corpus": "corpus",
    "BucketedBatchSampler": "batching",
    "ViewCollator": "batching",
    "RoundTrip": "translation.round_trip",
    "load_captions": "captions",
    "load_csts": "csts",
}
__all__ = list(_MODULE_OF)


def __getattr__(name: str) -> Any:
    if name not in _MODULE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_MODULE_OF[name]}"), name)
