"""The gate of a backbone: what contrastive training reaches from it, beside what needs none."""

import time
from pathlib import Path
from typing import Any

from cselab.data.sts import load_sts
from cselab.evaluation.sts import score_data
from cselab.experiments import open_lab

POOLINGS = ("cls", "mean", "first_last", "pooler")
FLOORS: dict[str, tuple[str, dict[str, Any]]] = {
    "word counts": ("words", {"weights": "counts"}),
    "TF-IDF": ("words", {}),
    "SIF": ("sif", {}),
    **{f"pretrained only ({how})": ("untrained", {"pooling": how}) for how in POOLINGS},
    **{f"whitened ({how})": ("whitened", {"start.pooling": how}) for how in ("cls", "first_last")},
}
"""Rows without contrastive training: a method, and what is changed of it."""
TRAINED = ("simcse", "sum", "tncse", "jtcse")


def measure(
    folder: str | Path, data_dir: str | Path | None, seed: int = 42
) -> list[dict[str, Any]]:
    """Spearman × 100 of each row on the dev pairs of STS-B and SNLI, and on STS17.

    The rows are FLOORS and the methods of profile `english`, one seed; `seconds` is what a row adds
    to those above it.

    Args:
        folder: The backbone.
        data_dir: A data folder with STSBenchmark; None: CSELAB_DATA.
    """
    lab = open_lab("gate", profile="english", backbone=str(folder), seed=seed, bf16=False)
    lab.check(*TRAINED)
    pairs = [load_sts("STSBenchmark", "dev", folder=data_dir), load_sts("SNLI", "dev")]
    pairs.append(load_sts("STS17-en-en"))
    rows = []
    for name, (method, changes) in (FLOORS | {name: (name, {}) for name in TRAINED}).items():
        began = time.perf_counter()
        trained = lab.train(method, **changes)
        seconds = time.perf_counter() - began
        scores = score_data(trained.encode, pairs, resamples=0).scores
        named = {f"{data.task} {data.split}": round(scores[data.task], 2) for data in pairs}
        rows.append({"row": name, **named, "seconds": round(seconds)})
    return rows
