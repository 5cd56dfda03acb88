"""STS evaluation: rank correlation of cosines with gold ratings, each distinct sentence encoded once."""

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import pearsonr, spearmanr

from cselab.data.sts import STS7, YEARLY, StsData, load_sts
from cselab.errors import DataError


@dataclass(frozen=True)
class TaskScore:
    """Correlations of one task, x100.

    spearman: over the pairs of all subsets together, the "all" setting of the papers' tables.
    mean, wmean: Spearman's mean over subsets, plain and weighted by their pairs.
    similarities: the cosines, (n,), for a paired comparison of two models.
    low, high: 95 % bootstrap interval of `spearman` over pairs, NaN if not asked for. It says what the choice of test
        pairs is worth, nothing about seeds.

    A model that gives every pair the same cosine scores 0, with a warning. A subset whose gold ratings are all equal has no score (NaN)
    and is left out of the means.
    """

    data: StsData
    spearman: float
    pearson: float
    mean: float
    wmean: float
    by_subset: dict[str, float]
    low: float
    high: float
    similarities: np.ndarray


@dataclass(frozen=True)
class StsReport:
    """Scores by task, in the order asked for."""

    tasks: dict[str, TaskScore]

    @property
    def scores(self) -> dict[str, float]:
        """Spearman x100 by task, "all" setting."""
        return {task: score.spearman for task, score in self.tasks.items()}

    @property
    def average(self) -> float:
        """Mean over tasks; over STS7 it is the papers' "Avg."."""
        return float(np.mean(list(self.scores.values())))

    def by_phenomenon(self, task: str = "World") -> dict[str, float]:
        """Spearman x100 within each subset of `task`; the subsets of World are what its pairs probe."""
        return self.tasks[task].by_subset

    def without_captions(self) -> "StsReport":
        """Scores of the same similarities over the pairs that are no captions (`StsData.captions`), without intervals; a task of captions
        alone is left out."""
        kept = {task: np.flatnonzero(~score.data.captions) for task, score in self.tasks.items()}
        return StsReport(
            {
                task: score_pairs(score.data.rows(kept[task]), score.similarities[kept[task]], resamples=0)
                for task, score in self.tasks.items()
                if len(kept[task])
            }
        )

    def to_rows(self) -> list[dict[str, Any]]:
        """A result row a task: score, interval, the other correlations, pairs, and which data it was."""
        return [
            {
                "task": task,
                "split": score.data.split,
                "n": len(score.data),
                "score": score.spearman,
                "low": score.low,
                "high": score.high,
                "pearson": score.pearson,
                "mean": score.mean,
                "wmean": score.wmean,
                "by_subset": score.by_subset,
                "data_source": str(score.data.source),
                "data_fingerprint": score.data.fingerprint,
            }
            for task, score in self.tasks.items()
        ]

    def to_frame(self):
        """The numbers of `to_rows` as a pandas table, with the average below."""
        import pandas as pd

        columns = ["task", "split", "n", "score", "low", "high", "pearson", "mean", "wmean"]
        frame = pd.DataFrame(self.to_rows(), columns=columns).astype({"n": "Int64"}).set_index("task")
        if len(frame) > 1:
            frame.loc["average", ["n", "score"]] = [frame["n"].sum(), self.average]
        return frame

    def __str__(self) -> str:
        sources = dict.fromkeys(str(score.data.source) for score in self.tasks.values())
        return "\n".join([self.to_frame().to_string(**_SHOWN), *sources])

    def _repr_html_(self) -> str:
        return self.to_frame().to_html(**_SHOWN)


_SHOWN = {"float_format": "{:.2f}".format, "na_rep": ""}


def evaluate_sts(
    encode: Callable[[list[str]], Any],
    tasks: str | Sequence[str] = STS7,
    *,
    split: str | Mapping[str, str] = "test",
    folder: str | Path | None = None,
    text: str = "raw",
    hub: bool = False,
    resamples: int = 1000,
) -> StsReport:
    """Spearman x100 of cosine similarity with the gold ratings, per task; nothing is trained on top.

    encode: list of n strings -> (n, d) array or tensor; called once, with every distinct sentence of all tasks.
    split: of all tasks, or by task with "test" for the others: `{"SICK-R": "all"}`.
    folder, hub: as in `load_sts`. text: "senteval" concerns STS12 to STS16; the other tasks have one form only.
    resamples: bootstrap resamples behind each interval; 0 for none.

    Raises DataError as `load_sts` does, and when `encode` returns another number of rows or values that are not finite.
    """
    tasks = (tasks,) if isinstance(tasks, str) else tasks
    splits = dict.fromkeys(tasks, split) if isinstance(split, str) else dict.fromkeys(tasks, "test") | dict(split)
    if not tasks or set(splits) - set(tasks):
        raise DataError(
            f"splits are given for {', '.join(splits) or 'nothing'}, tasks are {', '.join(tasks) or 'none'}"
        )
    loaded = [
        load_sts(task, splits[task], folder=folder, text=text if task in YEARLY else "raw", hub=hub) for task in tasks
    ]
    return score_data(encode, loaded, resamples=resamples)


def score_data(encode: Callable[[list[str]], Any], loaded: Sequence[StsData], *, resamples: int = 1000) -> StsReport:
    """`evaluate_sts` of pairs that are loaded already. Raises DataError where `encode` does as there."""
    sentences = list(dict.fromkeys(s for data in loaded for s in (*data.sentences1, *data.sentences2)))
    unit = unit_rows(encode(sentences), len(sentences))
    row = {sentence: i for i, sentence in enumerate(sentences)}
    scores = {}
    for data in loaded:
        first, second = ([row[s] for s in side] for side in (data.sentences1, data.sentences2))
        scores[data.task] = score_pairs(data, np.einsum("nd,nd->n", unit[first], unit[second]), resamples=resamples)
    return StsReport(scores)


def score_pairs(data: StsData, similarities: np.ndarray, *, resamples: int = 1000) -> TaskScore:
    """All correlations of one task from the similarities of its pairs, (n,)."""
    similarities = similarities.round(12)  # so that pairs of equal sentences tie, whatever their last bits
    if np.ptp(similarities) == 0:
        warnings.warn(
            f"{data.task} {data.split}: every pair has the cosine {similarities[0]:g}, so a correlation is undefined and counted as 0; "
            "the encoder gives all sentences one direction (has it collapsed?)", stacklevel=3,
        )  # fmt: skip
    subsets = np.asarray(data.subsets or [""] * len(data))
    chosen = {name: subsets == name for name in dict.fromkeys(data.subsets or [])}
    by_subset = {name: _correlation(spearmanr, similarities[mask], data.scores[mask]) for name, mask in chosen.items()}
    spearman = _correlation(spearmanr, similarities, data.scores)
    defined = [(score, chosen[name].sum()) for name, score in by_subset.items() if not np.isnan(score)]
    values, sizes = zip(*defined or [(spearman, len(data))], strict=True)
    low, high = _interval(similarities, data.scores, resamples)
    return TaskScore(
        data=data,
        spearman=spearman,
        pearson=_correlation(pearsonr, similarities, data.scores),
        mean=float(np.mean(values)),
        wmean=float(np.average(values, weights=sizes)),
        by_subset=by_subset,
        low=low,
        high=high,
        similarities=similarities,
    )


def _correlation(kind: Callable, similarities: np.ndarray, gold: np.ndarray) -> float:
    if np.ptp(gold) == 0:
        return float("nan")  # nothing to rank
    if np.ptp(similarities) == 0:
        return 0.0  # a collapsed model ranks nothing
    return 100 * float(kind(similarities, gold).statistic)


def _interval(similarities: np.ndarray, gold: np.ndarray, resamples: int) -> tuple[float, float]:
    """95 % percentile bootstrap of Spearman x100 over pairs, seeded; NaN without resamples or with nothing to rank.

    Each resample is ranked anew (keeping the ranks of the whole set moves the ends by tenths of a point), from the
    counts of its tied values, without sorting.
    """
    if not resamples or np.ptp(similarities) == 0 or np.ptp(gold) == 0:
        return float("nan"), float("nan")
    n, random = len(gold), np.random.default_rng(0)
    values = [np.unique(x, return_inverse=True)[1] for x in (similarities, gold)]
    correlations = []
    for _ in range(resamples):
        drawn = random.integers(n, size=n)
        x, y = (_centred_ranks(value[drawn]) for value in values)
        correlations.append(x @ y / max(np.sqrt((x @ x) * (y @ y)), 1e-12))
    low, high = 100 * np.percentile(correlations, [2.5, 97.5])
    return float(low), float(high)


def _centred_ranks(values: np.ndarray) -> np.ndarray:
    """Average ranks of small non-negative integers, minus their mean."""
    counts = np.bincount(values)
    return (counts.cumsum() - counts / 2)[values] - len(values) / 2


def finite_rows(vectors: Any, n: int) -> np.ndarray:
    """What an encoder gave for n sentences, as (n, d) float64. Raises DataError for another shape, NaN or infinity."""
    try:
        vectors = (
            vectors.detach().cpu().double().numpy() if hasattr(vectors, "detach") else np.asarray(vectors, np.float64)
        )
    except ValueError:  # numpy's "inhomogeneous shape"
        raise DataError(f"encode returned rows of different lengths for {n} sentences; expected ({n}, d)") from None
    if vectors.ndim != 2 or len(vectors) != n:
        raise DataError(f"encode returned shape {vectors.shape} for {n} sentences; expected ({n}, d)")
    bad = ~np.isfinite(vectors).all(1)
    if bad.any():
        raise DataError(
            f"encode returned NaN or infinity for {bad.sum()} of {n} sentences; the model may have diverged"
        )
    return vectors


def unit_rows(vectors: Any, n: int) -> np.ndarray:
    """The same, each row of length 1; a row of zeros stays zero, so that its cosine with anything is 0."""
    vectors = finite_rows(vectors, n)
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return vectors / np.where(lengths > 0, lengths, 1)
