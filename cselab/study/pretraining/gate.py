"""The gate of a backbone: what contrastive training reaches from it, beside what needs none."""

import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer

from cselab.data.sts import load_sts
from cselab.evaluation.sts import score_data
from cselab.experiments import open_lab
from cselab.experiments.lab import Lab

POOLINGS = ("cls", "mean", "first_last")
TRAINED = ("simcse", "sum", "tncse", "jtcse")


def measure(
    folder: str | Path, data_dir: str | Path | None, seed: int = 42
) -> list[dict[str, Any]]:
    """Spearman × 100 of each row on the dev pairs of STS-B and SNLI, and on STS17.

    The rows are cosines of word counts and TF-IDF, SIF, the untrained poolings, and the methods of
    profile `english`, one seed; `seconds` is what a row adds to those above it.

    Args:
        folder: The backbone.
        data_dir: A data folder with STSBenchmark; None: CSELAB_DATA.
    """
    lab = open_lab("gate", profile="english", backbone=str(folder), seed=seed, bf16=False)
    lab.check(*TRAINED)
    pairs = [load_sts("STSBenchmark", "dev", folder=data_dir), load_sts("SNLI", "dev")]
    pairs.append(load_sts("STS17-en-en"))
    rows = []
    tests = [s for data in pairs for s in (*data.sentences1, *data.sentences2)]
    for name, make in _rows(lab, tests):
        began = time.perf_counter()
        encode, seconds = make(), time.perf_counter() - began
        scores = score_data(encode, pairs, resamples=0).scores
        named = {f"{data.task} {data.split}": round(scores[data.task], 2) for data in pairs}
        rows.append({"row": name, **named, "seconds": round(seconds)})
    return rows


def _rows(lab: Lab, tests: list[str]) -> Iterator[tuple[str, Callable[[], Any]]]:
    """Names of rows, and functions that make their `encode`; words are those of the `tests`."""
    words = CountVectorizer(dtype=np.float32).fit(tests)
    rare = TfidfVectorizer(vocabulary=words.vocabulary_, dtype=np.float32)
    rare.fit([*lab.data.sentences(), *tests])
    for name, vectorizer in (("word counts", words), ("TF-IDF", rare)):
        yield name, partial(_dense, vectorizer)
    yield "SIF", partial(_trained, lab, "sif")
    for how in POOLINGS:
        yield f"untrained ({how})", partial(_trained, lab, "untrained", pooling=how)
    for method in TRAINED:
        yield method, partial(_trained, lab, method)


def _dense(vectorizer: Any) -> Callable[[list[str]], Any]:
    return lambda sentences: vectorizer.transform(sentences).toarray()


def _trained(lab: Lab, method: str, **changes: Any) -> Callable[[list[str]], Any]:
    return lab.train(method, **changes).encode
