"""STS evaluation: rank correlation of cosines with gold ratings."""

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import scipy
from scipy import sparse

from cselab.data.sources import parse_names
from cselab.data.sts import STS7, YEARLY, StsData, load_sts
from cselab.errors import DataError


@dataclass(frozen=True)
class TaskScore:
    """Correlations of one task, x100.

    A model with the same cosine for every pair scores 0, with a warning. A subset whose gold
    ratings are all equal has no score (NaN) and is left out of the means.

    Attributes:
        spearman: Over the pairs of all subsets together, the "all" setting of the papers' tables.
        pearson: Over the same pairs.
        mean: Unweighted mean of the subsets' Spearman.
        wmean: Mean of the subsets' Spearman, weighted by their numbers of pairs.
        low: Lower end of the 95 % bootstrap interval of `spearman` over test pairs, NaN without
            resamples. It does not include the variation over seeds.
        similarities: The cosines, (n,), for a paired comparison of two models.
    """

    data: StsData
    spearman: float
    pearson: float
    mean: float
    wmean: float
    by_subset: dict[str, float]
    low: float
    high: float
    similarities: np.ndarray = field(repr=False)


@dataclass(frozen=True)
class StsReport:
    """Scores by task, in the order of the tasks; prints as a table."""

    tasks: dict[str, TaskScore]

    def __repr__(self) -> str:
        scores = ", ".join(f"{task} {score:.2f}" for task, score in self.scores.items())
        return f"StsReport({scores}; average {self.average:.2f})"

    @property
    def scores(self) -> dict[str, float]:
        """Spearman x100 by task, "all" setting."""
        return {task: score.spearman for task, score in self.tasks.items()}

    @property
    def average(self) -> float:
        """Mean over tasks; over STS7 it is the papers' "Avg."."""
        return float(np.mean(list(self.scores.values())))

    def without_captions(self) -> "StsReport":
        """Scores over the pairs that are no captions, of tasks with two ratings of such pairs."""
        tasks = {}
        for task, score in self.tasks.items():
            kept = np.flatnonzero(~score.data.captions)
            if len(set(score.data.scores[kept])) > 1:
                data, similarities = score.data.rows(kept), score.similarities[kept]
                tasks[task] = score_pairs(data, similarities, resamples=0)
        return StsReport(tasks)

    def to_rows(self) -> list[dict[str, Any]]:
        """One row per task: scores, interval, number of pairs, source and hash of the data."""
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
        """The numbers of `to_rows` as a pandas table, with the average in the last row."""
        import pandas as pd

        columns = ["task", "split", "n", "score", "low", "high", "pearson", "mean", "wmean"]
        frame = pd.DataFrame(self.to_rows(), columns=columns)
        frame = frame.astype({"n": "Int64"}).set_index("task")
        if len(frame) > 1:
            frame.loc["average", ["n", "score"]] = [frame["n"].sum(), self.average]
        return frame

    def __str__(self) -> str:
        sources = dict.fromkeys(str(score.data.source) for score in self.tasks.values())
        return "\n".join([self.to_frame().to_string(**_FORMAT), *sources])

    def _repr_html_(self) -> str:
        return self.to_frame().to_html(**_FORMAT)


_FORMAT = {"float_format": "{:.2f}".format, "na_rep": ""}


def evaluate_sts(
    encode: Callable[[list[str]], Any],
    tasks: str | Path | Sequence[str | Path] = STS7,
    *,
    split: str | Mapping[str, str] = "test",
    folder: str | Path | None = None,
    text: str = "raw",
    hub: bool = False,
    resamples: int = 1000,
) -> StsReport:
    """Spearman x100 of the cosine similarity with the gold ratings, per task, without training.

    Args:
        encode: List of n strings -> (n, d) array, tensor or sparse matrix; called once, with the
            distinct sentences of all tasks.
        tasks: Names or paths as in `load_sts`, as are `folder` and `hub`.
        split: Split of all tasks, or by task with "test" for the others: `{"SICK-R": "all"}`.
        text: "raw", or "senteval" for STS12 to STS16; the other tasks have one form only.
        resamples: Number of bootstrap resamples of each interval; 0 for no interval.

    Raises:
        DataError: As `load_sts`; for splits of other tasks; for two test sets of one name; and if
            `encode` returns another number of rows or values that are not finite.

    Examples:
        >>> from cselab.evaluation import evaluate_sts
        >>> encode = lambda sentences: [[len(sentence), 10.0] for sentence in sentences]
        >>> report = evaluate_sts(encode, "Synthetic", resamples=0)
        >>> report.average == report.scores["Synthetic"], report.to_frame()["n"].to_dict()
        (True, {'Synthetic': 1500})
    """
    tasks = parse_names(tasks)
    splits = dict.fromkeys(tasks, split if isinstance(split, str) else "test")
    if not isinstance(split, str):
        splits |= {str(task): name for task, name in split.items()}
    if not tasks or set(splits) - set(tasks):
        raise DataError(
            f"got splits of {', '.join(splits) or 'no task'}, but the tasks are "
            f"{', '.join(tasks) or 'none'}"
        )
    loaded = [
        load_sts(task, splits[task], folder=folder, text=text if task in YEARLY else "raw", hub=hub)
        for task in tasks
    ]
    return score_data(encode, loaded, resamples=resamples)


def score_data(
    encode: Callable[[list[str]], Any], loaded: Sequence[StsData], *, resamples: int = 1000
) -> StsReport:
    """`evaluate_sts` on pairs that are loaded already, by `load_sts`.

    Raises:
        DataError: For two test sets of one name, and for bad vectors.

    Examples:
        >>> from cselab.data import load_sts
        >>> from cselab.evaluation import score_data
        >>> lengths = lambda sentences: [[len(sentence), 10.0] for sentence in sentences]
        >>> report = score_data(lengths, [load_sts("Synthetic", "dev")], resamples=0)
        >>> report.tasks["Synthetic"].data.split
        'dev'
    """
    names = [data.task for data in loaded]
    if doubled := [name for name in names if names.count(name) > 1]:
        raise DataError(
            f"two test sets are called {doubled[0]!r}; rename a file, or give one of them"
        )
    sentences = list(
        dict.fromkeys(s for data in loaded for s in (*data.sentences1, *data.sentences2))
    )
    unit = unit_rows(encode(sentences), len(sentences))
    row = {sentence: i for i, sentence in enumerate(sentences)}
    scores = {}
    for data in loaded:
        first, second = ([row[s] for s in side] for side in (data.sentences1, data.sentences2))
        cosines = _row_products(unit[first], unit[second])
        scores[data.task] = score_pairs(data, cosines, resamples=resamples)
    return StsReport(scores)


def score_pairs(data: StsData, similarities: np.ndarray, *, resamples: int = 1000) -> TaskScore:
    """All correlations of one task from the similarities of its n pairs, (n,)."""
    # rounded, so that pairs of equal sentences tie
    similarities = similarities.round(12)
    if np.ptp(similarities) == 0:
        warnings.warn(
            f"{data.task} {data.split}: every pair has the cosine {similarities[0]:g}, so the "
            "correlation is undefined and counted as 0; all embeddings have one direction (the "
            "encoder may have collapsed)",
            stacklevel=3,
        )
    subsets = np.asarray(data.subsets or [""] * len(data))
    masks = {name: subsets == name for name in dict.fromkeys(data.subsets or [])}
    by_subset = {
        name: _correlation(scipy.stats.spearmanr, similarities[mask], data.scores[mask])
        for name, mask in masks.items()
    }
    spearman = _correlation(scipy.stats.spearmanr, similarities, data.scores)
    scored = by_subset.items()
    defined = [(score, masks[name].sum()) for name, score in scored if not np.isnan(score)]
    values, sizes = zip(*defined or [(spearman, len(data))], strict=True)
    low, high = _interval(similarities, data.scores, resamples)
    return TaskScore(
        data=data,
        spearman=spearman,
        pearson=_correlation(scipy.stats.pearsonr, similarities, data.scores),
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
    """95 % percentile bootstrap interval of Spearman x100 over pairs; NaN where undefined.

    Each resample is ranked anew, from the counts of tied values: the ranks of the whole set would
    change the bounds by tenths of a point.
    """
    if not resamples or np.ptp(similarities) == 0 or np.ptp(gold) == 0:
        return float("nan"), float("nan")
    correlations = resampled((similarities,), gold, resamples, np.random.default_rng(0))[:, 0]
    low, high = np.percentile(correlations, [2.5, 97.5])
    return float(low), float(high)


def resampled(
    similarities: Sequence[np.ndarray],
    gold: np.ndarray,
    resamples: int,
    random: np.random.Generator,
) -> np.ndarray:
    """Spearman x100 of k models on the same bootstrap resamples of the pairs, (resamples, k)."""
    n = len(gold)
    *models, gold = (np.unique(x, return_inverse=True)[1] for x in (*similarities, gold))
    correlations = np.empty((resamples, len(models)))
    for i in range(resamples):
        drawn = random.integers(n, size=n)
        y = _centred_ranks(gold[drawn])
        for k, model in enumerate(models):
            x = _centred_ranks(model[drawn])
            correlations[i, k] = x @ y / max(np.sqrt((x @ x) * (y @ y)), 1e-12)
    return 100 * correlations


def _centred_ranks(values: np.ndarray) -> np.ndarray:
    """Average ranks of small non-negative integers, minus their mean."""
    counts = np.bincount(values)
    return (counts.cumsum() - counts / 2)[values] - len(values) / 2


def finite_rows(vectors: Any, n: int) -> np.ndarray:
    """Embeddings of n sentences (tensor, array or nested lists) as (n, d) float64.

    Raises:
        DataError: For another shape, NaN or infinity.
    """
    kind = type(vectors).__name__
    if sparse.issparse(vectors):
        raise DataError(
            "encode returned a sparse matrix (word counts), whose columns are its call's words; "
            "it can score pairs (evaluate_sts) and nothing else"
        )
    try:
        if not hasattr(vectors, "__array__"):  # a list of rows
            vectors = [_numbers(row) for row in vectors]
        vectors = np.asarray(_numbers(vectors), np.float64)
    except (TypeError, ValueError) as error:
        if "inhomogeneous" in str(error):
            kind = "rows of different lengths"
        raise DataError(f"encode returned {kind} for {n} sentences; expected ({n}, d)") from None
    if vectors.ndim != 2 or len(vectors) != n:
        raise DataError(
            f"encode returned shape {vectors.shape} for {n} sentences; expected ({n}, d)"
        )
    bad = ~np.isfinite(vectors).all(1)
    if bad.any():
        raise DataError(
            f"encode returned NaN or infinity for {bad.sum()} of {n} sentences; the model may have "
            "diverged"
        )
    return vectors


def _numbers(x: Any) -> Any:
    """A tensor as an array, also one of bfloat16, on a GPU, or with a gradient."""
    return x.detach().cpu().double().numpy() if hasattr(x, "detach") else x


def unit_rows(vectors: Any, n: int) -> Any:
    """`finite_rows`, each normalised to length 1; rows of zeros stay zero, with cosine 0. A sparse
    matrix (word counts) stays one."""
    if sparse.issparse(vectors):
        finite_rows(vectors.sum(axis=1)[:, None], n)
        lengths = sparse.linalg.norm(vectors, axis=1)
        return sparse.diags_array(1 / np.where(lengths > 0, lengths, 1)).tocsr() @ vectors
    vectors = finite_rows(vectors, n)
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return vectors / np.where(lengths > 0, lengths, 1)


def _row_products(a: Any, b: Any) -> np.ndarray:
    """Inner products of the rows of two matrices, (n,)."""
    if sparse.issparse(a):
        return np.asarray(a.multiply(b).sum(axis=1)).ravel()
    return np.einsum("nd,nd->n", a, b)
