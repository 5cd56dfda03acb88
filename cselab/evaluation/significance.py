"""Significance of differences: over seeds (of training) and over test pairs (of two models)."""

import bisect
import math
from dataclasses import dataclass

import numpy as np
import scipy
from numpy.typing import ArrayLike

from cselab.errors import DataError
from cselab.evaluation.sts import StsReport, TaskScore, resampled

FEWEST_SEEDS = 3
"""Seeds of a comparison; with two, the interval is too wide to say anything."""


@dataclass(frozen=True)
class SeedComparison:
    """Method a minus method b over n common seeds, in points; printed as a sentence.

    Attributes:
        sd: Of the differences.
        low: Lower end of the 95 % t interval of the mean difference.
        p: Of the two-sided paired t test, below 0.05 where the interval leaves out 0; NaN where the
            difference is the same at every seed and not 0, which has no test.
        effect: Cohen's d of paired differences (mean / sd).
        power: Probability that a paired t test at 5 % finds a true difference of the observed size
            with n seeds; 0 where the scores are equal at every seed.
        seeds_needed: For a power of 80 %.
        pairs: Standard error from the choice of test pairs, which no number of seeds lowers; 0 of
            `compare_seeds`, whose interval, p and power are over seeds alone.
    """

    n: int
    mean: float
    sd: float
    low: float
    high: float
    p: float
    effect: float
    power: float
    seeds_needed: int
    pairs: float = 0.0

    @classmethod
    def of(cls, n: int, mean: float, sd: float, pairs: float = 0.0) -> "SeedComparison":
        """The comparison of n differences with this mean and standard deviation."""
        if sd < 1e-12 and pairs < 1e-12:
            if abs(mean) < 1e-12:
                return cls(n, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, seeds_needed(0.0))
            return cls(n, mean, 0.0, mean, mean, math.nan, math.copysign(math.inf, mean), 1.0, 3)
        error = _error(n, sd, pairs)
        effect = mean / (error * math.sqrt(n))
        half = scipy.stats.t.ppf(0.975, n - 1) * error
        p = float(2 * scipy.stats.t.sf(abs(mean) / error, n - 1))
        power, needed = paired_t_power(effect, n), seeds_needed(effect)
        return cls(n, mean, sd, mean - half, mean + half, p, effect, power, needed, pairs)

    def within(self, margin: float) -> bool:
        """Whether the 90 % interval lies inside ± margin: two one-sided t tests at 5 %."""
        half = scipy.stats.t.ppf(0.95, self.n - 1) * _error(self.n, self.sd, self.pairs)
        return bool(abs(self.mean) + half < margin)

    def __str__(self) -> str:
        if self.power == 0:
            return (
                f"the same score at each of {self.n} seeds; more seeds would not show a difference."
            )
        if self.sd == 0:
            return f"{self.mean:+.2f} points at each of {self.n} seeds, which do not change it."
        if self.pairs:
            return (
                f"{self.mean:+.2f} points, 95 % interval [{self.low:+.2f}, {self.high:+.2f}] over "
                f"{self.n} seeds and the test pairs; p = {self.p:.3f}."
            )
        text = (
            f"{self.mean:+.2f} points, 95 % interval [{self.low:+.2f}, {self.high:+.2f}] over "
            f"{self.n} seeds (sd {self.sd:.2f}); p = {self.p:.3f} (paired t test); effect size "
            f"d = {self.effect:.2f}."
        )
        if self.power >= 0.8:
            return f"{text} Power {self.power:.0%}."
        return (
            f"{text} Power is only {self.power:.0%}: {self.n} seeds are too few to find a "
            f"difference of this size reliably; about {self.seeds_needed} seeds are needed. A "
            "difference that is not found here may still exist."
        )


def _error(n: int, sd: float, pairs: float) -> float:
    """Standard error of a mean over n seeds; `pairs` as in SeedComparison."""
    return math.hypot(sd / math.sqrt(n), pairs)


def compare_seeds(a: ArrayLike, b: ArrayLike) -> SeedComparison:
    """Compare the scores of two methods over n common seeds, (n,) each.

    Raises:
        DataError: For different lengths, fewer than three seeds, or values that are not finite.

    Examples:
        >>> from cselab.evaluation import compare_seeds
        >>> result = compare_seeds([72.0, 72.5, 73.0, 72.4], [70.9, 71.6, 72.2, 71.0])
        >>> f"{result.mean:.2f} [{result.low:.2f}, {result.high:.2f}]"
        '1.05 [0.63, 1.47]'
        >>> f"{result.p:.3f}", result.seeds_needed
        ('0.004', 3)
    """
    a, b = np.asarray(a, np.float64), np.asarray(b, np.float64)
    if a.shape != b.shape or a.ndim != 1 or len(a) < FEWEST_SEEDS or not np.isfinite([a, b]).all():
        raise DataError(
            "a comparison over seeds needs two equally long lists of at least 3 finite scores; "
            f"got {a.shape} and {b.shape}"
        )
    difference = a - b
    return SeedComparison.of(len(a), difference.mean(), difference.std(ddof=1))


def compare_crossed(a: ArrayLike, b: ArrayLike) -> SeedComparison:
    """Compare two methods over seeds and over test pairs: a difference that should hold for other
    seeds and for other pairs.

    The variance of the mean difference is the sum of two: that over seeds, divided by n, and that
    over test pairs, which more seeds do not lower. The latter is the bootstrap variance of the mean
    over seeds, less what pairs and seeds share, which the former has already (the pigeonhole
    bootstrap, Owen 2007, https://arxiv.org/abs/0712.1111, counts it three times). The interval has
    Student's t with n - 1 degrees of freedom.

    Args:
        a: Scores, (n, 1 + r): of n seeds on the test pairs themselves, and on r resamples of them,
            which are the same for all (the measure "resamples").
        b: Those of the other method, at the same seeds.

    Raises:
        DataError: For different shapes, fewer than three seeds, fewer than two resamples, or values
            that are not finite.

    Examples:
        >>> import numpy as np
        >>> from cselab.evaluation import compare_crossed, compare_seeds
        >>> noise = np.random.default_rng(0).normal(size=(5, 100))
        >>> a = np.hstack([np.arange(5)[:, None] + 0.5, np.arange(5)[:, None] + noise])
        >>> b = np.hstack([np.arange(5)[:, None], np.arange(5)[:, None] + 0 * noise])
        >>> for one in (compare_crossed(a, b), compare_seeds(a[:, 0], b[:, 0])):
        ...     print(f"{one.mean:.2f} [{one.low:.2f}, {one.high:.2f}]")
        0.50 [0.50, 0.50]
        0.50 [0.50, 0.50]
    """
    a, b = np.asarray(a, np.float64), np.asarray(b, np.float64)
    few = a.ndim != 2 or len(a) < FEWEST_SEEDS or a.shape[1] < 3
    if a.shape != b.shape or few or not np.isfinite([a, b]).all():
        raise DataError(
            "a comparison over seeds and pairs needs two tables of at least 3 seeds and 2 resamples"
            f" of the same, finite scores; got {a.shape} and {b.shape}"
        )
    n, observed, drawn = len(a), (a - b)[:, 0], (a - b)[:, 1:]
    shared = (drawn - drawn.mean(0)).var(1, ddof=1).mean() / (n - 1)
    pairs = max(0.0, drawn.mean(0).var(ddof=1) - shared)
    return SeedComparison.of(n, observed.mean(), observed.std(ddof=1), math.sqrt(pairs))


def paired_t_power(effect: float, n: int, *, level: float = 0.05) -> float:
    """Power of the two-sided paired t test (noncentral t).

    `effect` is the true d: mean of the paired differences / their standard deviation.
    """
    critical = scipy.stats.t.ppf(1 - level / 2, n - 1)
    shift = abs(effect) * math.sqrt(n)
    power = scipy.stats.nct.sf(critical, n - 1, shift) + scipy.stats.nct.cdf(
        -critical, n - 1, shift
    )
    return float(power) if math.isfinite(power) else 1.0  # scipy returns NaN for a large shift


def seeds_needed(effect: float, *, power: float = 0.8, most: int = 100_000) -> int:
    """Smallest number of seeds, `most` at most, for which `paired_t_power` reaches `power`.

    Examples:
        >>> from cselab.evaluation import seeds_needed
        >>> seeds_needed(1.0), seeds_needed(0.5)
        (10, 34)
    """
    if paired_t_power(effect, most) < power:
        return most
    low, high = 2, 4
    while high < most and paired_t_power(effect, high) < power:  # few are usually enough
        low, high = high, min(2 * high, most)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if paired_t_power(effect, middle) >= power else (middle, high)
    return high


def seeds_for_width(sd: float, half_width: float, *, pairs: float = 0.0, most: int = 10_000) -> int:
    """Smallest number of seeds, `most` at most, whose 95 % t interval has at most this half width.

    `sd` is that of the paired differences, `pairs` as in `SeedComparison`.
    """

    def reaches(n: int) -> bool:
        return bool(scipy.stats.t.ppf(0.975, n - 1) * _error(n, sd, pairs) <= half_width)

    return bisect.bisect_left(range(most), True, lo=3, key=reaches)


@dataclass(frozen=True)
class PairComparison:
    """Spearman x100 of model a minus that of model b, on the test pairs, with a paired bootstrap.

    [low, high] is the 95 % interval; the two-sided p comes from the share of resampled differences
    on the other side of 0.
    """

    difference: float
    low: float
    high: float
    p_bootstrap: float


def compare_pairs(
    a: TaskScore, b: TaskScore, *, resamples: int = 2000, seed: int = 0
) -> PairComparison:
    """Compare two trained models on the pairs of one task by a paired bootstrap over the pairs.

    The result, a minus b, says nothing about other seeds.

    Raises:
        DataError: Unless both scores are of the same pairs.

    Examples:
        >>> from cselab.data import load_sts
        >>> from cselab.evaluation import compare_pairs, score_pairs
        >>> data = load_sts("Synthetic")
        >>> exact = score_pairs(data, data.scores, resamples=0)
        >>> coarse = score_pairs(data, data.scores // 2, resamples=0)
        >>> found = compare_pairs(exact, coarse, resamples=100)
        >>> 0 < found.low < found.difference < found.high, found.p_bootstrap
        (True, 0.02)
    """
    random = np.random.default_rng(seed)
    return _compared(a.spearman - b.spearman, _differences(a, b, resamples, random))


def compare_averages(
    a: StsReport, b: StsReport, *, resamples: int = 1000, seed: int = 0
) -> PairComparison:
    """Compare the averages of two trained models over the same tests, as `compare_pairs`.

    The pairs of each test are resampled by themselves. Of one test it is `compare_pairs`.

    Raises:
        DataError: Unless both reports are of the same pairs, in the same order of tests.

    Examples:
        >>> from cselab.evaluation import compare_averages, evaluate_sts
        >>> letters = lambda texts: [[t.count(c) for c in "aeiou"] for t in texts]
        >>> lengths = lambda texts: [[len(t), 10] for t in texts]
        >>> reports = [evaluate_sts(e, "Synthetic", resamples=0) for e in (letters, lengths)]
        >>> found = compare_averages(*reports, resamples=100)
        >>> found.difference > 0, found.p_bootstrap
        (True, 0.02)
    """
    if list(a.tasks) != list(b.tasks):
        raise DataError(
            f"a comparison of averages needs the same tests; got {', '.join(a.tasks)} and "
            f"{', '.join(b.tasks)}"
        )
    random = np.random.default_rng(seed)
    differences = [
        _differences(a.tasks[task], b.tasks[task], resamples, random) for task in a.tasks
    ]
    return _compared(a.average - b.average, np.mean(differences, axis=0))


def _differences(
    a: TaskScore, b: TaskScore, resamples: int, random: np.random.Generator
) -> np.ndarray:
    """Spearman x100 of a minus that of b on each resample of the pairs, (resamples,)."""
    if a.data.fingerprint != b.data.fingerprint:
        raise DataError(
            f"a paired bootstrap needs scores of the same pairs; got {a.data.task} {a.data.split} "
            "and other pairs"
        )
    one, two = resampled((a.similarities, b.similarities), a.data.scores, resamples, random).T
    return one - two


def _compared(difference: float, found: np.ndarray) -> PairComparison:
    low, high = np.percentile(found, [2.5, 97.5])
    beyond = min(np.mean(found <= 0), np.mean(found >= 0))
    p = min(1.0, 2 * max(float(beyond), 1 / len(found)))
    return PairComparison(difference, float(low), float(high), p)
