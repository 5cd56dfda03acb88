"""STS evaluation: rank correlation of cosines with gold ratings, each distinct sentence encoded once."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import pearsonr, rankdata, spearmanr

from cselab.data.sts import STS7, StsData, load_sts
from cselab.errors import DataError

RESAMPLES = 1000


@dataclass(frozen=True)
class TaskScore:
    """One task. All scores are x100. `spearman` is the "all" setting: the subsets' pairs together.

    mean, wmean: mean over subsets, plain and weighted by their pairs. low, high: 95 % bootstrap interval of `spearman` over
    pairs (not over seeds).
    """

    data: StsData
    spearman: float
    pearson: float
    mean: float
    wmean: float
    by_subset: dict[str, float]
    low: float
    high: float


@dataclass(frozen=True)
class StsReport:
    """Scores by task, in the order asked for."""

    tasks: dict[str, TaskScore]

    @property
    def scores(self) -> dict[str, float]:
        """Spearman x100, "all" setting."""
        return {task: score.spearman for task, score in self.tasks.items()}

    @property
    def average(self) -> float:
        """Mean over tasks; over STS7 it is the papers' "Avg."."""
        return float(np.mean(list(self.scores.values())))

    def to_rows(self) -> list[dict[str, Any]]:
        """A result row a task: score, interval, other aggregations, number of pairs, source and fingerprint of the data."""
        return [
            {
                "task": task, "split": score.data.split, "score": score.spearman, "low": score.low, "high": score.high,
                "pearson": score.pearson, "mean": score.mean, "wmean": score.wmean, "by_subset": score.by_subset,
                "n": len(score.data), "data_source": str(score.data.source), "data_fingerprint": score.data.fingerprint,
            }
            for task, score in self.tasks.items()
        ]  # fmt: skip

    def __str__(self) -> str:
        cells = [f"{task} {score.spearman:.2f} [{score.low:.1f}, {score.high:.1f}]" for task, score in self.tasks.items()]
        return "  ".join([*cells, f"average {self.average:.2f}"] if len(cells) > 1 else cells)


def evaluate_sts(
    encode: Callable[[list[str]], Any],
    tasks: Sequence[str] = STS7,
    *,
    split: str = "test",
    folder: str | Path | None = None,
    text: str = "raw",
    hub: bool = False,
) -> StsReport:
    """Spearman x100 of cosine similarity with the gold ratings, per task.

    encode: list of n strings -> (n, d) array or tensor; called once, with every distinct sentence of all tasks.
    split, folder, text, hub: as in `load_sts`. The protocol is the papers': no training on top, all subsets together.

    Raises DataError when `encode` returns another number of rows, or values that are not finite.
    """
    loaded = [load_sts(task, split, folder=folder, text=text, hub=hub) for task in tasks]
    sentences = list(dict.fromkeys(s for data in loaded for s in (*data.sentences1, *data.sentences2)))
    unit = _unit(encode(sentences), len(sentences))
    row = {sentence: i for i, sentence in enumerate(sentences)}
    scores = {}
    for data in loaded:
        first, second = ([row[s] for s in side] for side in (data.sentences1, data.sentences2))
        scores[data.task] = score_pairs(data, np.einsum("nd,nd->n", unit[first], unit[second]))
    return StsReport(scores)


def score_pairs(data: StsData, similarities: np.ndarray) -> TaskScore:
    """All aggregations of one task from its pairs' similarities, (n,)."""
    subsets = np.asarray(data.subsets)
    names = [name for name in dict.fromkeys(data.subsets) if name]
    by_subset = {name: _spearman(similarities[subsets == name], data.scores[subsets == name]) for name in names}
    spearman = _spearman(similarities, data.scores)
    counts = [int((subsets == name).sum()) for name in names]
    low, high = _interval(similarities, data.scores)
    return TaskScore(
        data=data,
        spearman=spearman,
        pearson=100 * float(pearsonr(similarities, data.scores).statistic),
        mean=float(np.mean(list(by_subset.values()))) if names else spearman,
        wmean=float(np.average(list(by_subset.values()), weights=counts)) if names else spearman,
        by_subset=by_subset,
        low=low,
        high=high,
    )


def _spearman(similarities: np.ndarray, gold: np.ndarray) -> float:
    return 100 * float(spearmanr(similarities, gold).statistic)


def _interval(similarities: np.ndarray, gold: np.ndarray) -> tuple[float, float]:
    """Percentile bootstrap over pairs. The ranks are those of the whole set: ranking each resample again changes the
    interval in the second decimal and takes a hundred times as long."""
    ranks = np.stack([rankdata(similarities), rankdata(gold)])
    draws = np.random.default_rng(0).integers(len(gold), size=(RESAMPLES, len(gold)))
    x, y = ranks[0][draws], ranks[1][draws]
    x, y = x - x.mean(1, keepdims=True), y - y.mean(1, keepdims=True)
    correlations = (x * y).sum(1) / np.sqrt((x * x).sum(1) * (y * y).sum(1))
    low, high = 100 * np.nanpercentile(correlations, [2.5, 97.5])
    return float(low), float(high)


def _unit(vectors: Any, n: int) -> np.ndarray:
    """Rows of length 1 in float64; a row of zeros stays zero, so that its cosine with anything is 0."""
    vectors = vectors.detach().cpu().numpy() if hasattr(vectors, "detach") else np.asarray(vectors)
    if vectors.ndim != 2 or len(vectors) != n:
        raise DataError(f"encode returned shape {vectors.shape} for {n} sentences; expected ({n}, d)")
    vectors = vectors.astype(np.float64)
    bad = ~np.isfinite(vectors).all(1)
    if bad.any():
        raise DataError(f"encode returned NaN or infinity for {bad.sum()} of {n} sentences; the model may have diverged")
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return vectors / np.where(lengths > 0, lengths, 1)
