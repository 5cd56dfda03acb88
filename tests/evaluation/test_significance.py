"""Differences between methods against a closed form or another implementation."""

import math

import numpy as np
import pytest
from scipy import stats

from cselab.data.sources import Source
from cselab.data.sts import StsData
from cselab.errors import DataError
from cselab.evaluation import (
    StsReport,
    compare_averages,
    compare_crossed,
    compare_pairs,
    compare_seeds,
    paired_t_power,
    score_pairs,
    seeds_for_width,
    seeds_needed,
)

A, B = [70.1, 69.4, 71.0, 70.7, 70.2, 69.9], [69.5, 69.6, 70.1, 70.0, 69.4, 69.8]


def test_the_interval_is_the_paired_t_tests():
    """Against scipy; prevents an interval of unpaired seeds."""
    found, t = compare_seeds(A, B), stats.ttest_rel(A, B)
    interval = t.confidence_interval(0.95)
    assert (found.low, found.high) == pytest.approx((interval.low, interval.high))
    assert found.mean == pytest.approx(np.mean(A) - np.mean(B))
    assert found.p == pytest.approx(t.pvalue)


@pytest.mark.parametrize("n", [3, 5, 12])
def test_p_is_below_five_percent_where_the_interval_leaves_out_0(n):
    """Prevents intervals and p values that contradict each other."""
    random = np.random.default_rng(n)
    found = [compare_seeds(random.normal(0.8, 1, n), np.zeros(n)) for _ in range(200)]
    outside = [one.low > 0 or one.high < 0 for one in found]
    assert [one.p < 0.05 for one in found] == outside
    assert 0 < sum(outside) < 200


@pytest.mark.parametrize(("effect", "n"), [(0.5, 10), (1.0, 8), (0.2, 50)])
def test_power_is_how_often_the_test_sees_it(effect, n):
    """Against simulated studies; prevents the power of a one-sided or an unpaired test."""
    random = np.random.default_rng(1)
    drawn = random.normal(effect, 1, (20_000, n))
    seen = (stats.ttest_1samp(drawn, 0, axis=1).pvalue < 0.05).mean()
    assert paired_t_power(effect, n) == pytest.approx(seen, abs=0.015)
    assert paired_t_power(0.0, n) == pytest.approx(0.05)


def test_seeds_for_a_width_are_the_first_that_reach_it():
    """Prevents a number of seeds that is one too few, or a search that starts above the answer."""
    for sd, width in [(0.3, 0.2), (2.0, 0.2), (0.01, 0.2), (0.0, 0.2)]:
        n = seeds_for_width(sd, width)
        reach = [stats.t.ppf(0.975, k - 1) * sd / k**0.5 for k in (n, n - 1)]
        assert reach[0] <= width
        assert n == 3 or reach[1] > width
    assert seeds_for_width(1e6, 0.2) == 10_000


def test_seeds_needed_is_the_first_that_suffices():
    """Prevents advice of one seed too few."""
    for effect in (0.3, 0.84, -1.5):
        n = seeds_needed(effect)
        assert paired_t_power(effect, n) >= 0.8 > paired_t_power(effect, n - 1)
    assert seeds_needed(0.0) == 100_000
    assert seeds_needed(50.0) == 3  # as few as are compared at all


def test_a_comparison_without_power_says_so():
    """Prevents "no difference" from being read out of three seeds."""
    weak = str(compare_seeds([70.0, 71.0, 69.0], [69.9, 70.2, 69.4]))
    assert "Power is only" in weak
    assert "seeds are needed" in weak
    strong = compare_seeds([70.0, 71.0, 70.5, 70.2], [60.0, 61.1, 60.4, 60.3])
    assert "are needed" not in str(strong)


def test_scores_that_never_vary():
    """Prevents NaN, certainty, or billions of seeds advised, for differences without a variance."""
    same = compare_seeds(A, A)
    assert (same.mean, same.low, same.high, same.effect, same.power, same.p) == (0, 0, 0, 0, 0, 1)
    assert "same score" in str(same)
    assert "needed" not in str(same)
    always = compare_seeds([71, 71, 71], [70, 70, 70])
    assert always.effect == math.inf
    assert math.isnan(always.p)
    assert str(always) == "+1.00 points at each of 3 seeds, which do not change it."


@pytest.mark.parametrize(
    "pair", [([1, 2], [1, 2]), ([1, 2, 3], [1, 2]), ([1, 2, math.nan], [1, 2, 3])]
)
def test_unpaired_or_too_few_seeds_are_refused(pair):
    """Prevents scores of different seeds that are compared as pairs."""
    with pytest.raises(DataError, match="at least 3 finite scores"):
        compare_seeds(*pair)


def test_paired_bootstrap_uses_the_same_pairs_for_both():
    """Prevents two independent resamples, whose difference is far noisier."""
    random, texts = np.random.default_rng(0), [f"sentence {i}" for i in range(1000)]
    gold, source = random.uniform(0, 5, 1000), Source("embedded", "a test")
    data = StsData("STS12", "test", texts, texts[::-1], gold, None, source)
    base = data.scores + random.normal(0, 2, len(data))
    one, two, other = (
        score_pairs(data, x, resamples=0)
        for x in (base, base + random.normal(0, 0.3, len(data)), -base)
    )
    near = compare_pairs(one, two, resamples=300)
    assert near.low <= near.difference <= near.high
    assert near.high - near.low < 3
    # the least that 100 can say
    assert compare_pairs(one, other, resamples=100).p_bootstrap == pytest.approx(0.02)
    assert compare_pairs(one, one, resamples=50).p_bootstrap == 1
    with pytest.raises(DataError, match="same pairs"):
        compare_pairs(one, score_pairs(data.subsample(500), base[:500], resamples=0))


def test_averages_are_compared_over_all_tests():
    """Prevents a verdict on the average of seven tests that only the first of them gave."""
    random, source = np.random.default_rng(0), Source("embedded", "a test")
    better, worse = {}, {}
    for task, noise in (("first", 1.0), ("second", 3.0)):  # equal on the first test only
        gold = random.uniform(0, 5, 400)
        texts = [f"{task} {i}" for i in range(400)]
        data = StsData(task, "test", texts, texts[::-1], gold, None, source)
        near = gold + random.normal(0, 1, 400)
        better[task] = score_pairs(data, near, resamples=0)
        worse[task] = score_pairs(data, near + random.normal(0, noise - 1, 400), resamples=0)
    one, two = StsReport(better), StsReport(worse)
    found = compare_averages(one, two, resamples=200)
    assert found.difference == pytest.approx(one.average - two.average)
    assert 0 < found.low < found.difference < found.high
    assert compare_averages(one, two, resamples=200).low == found.low  # the same resamples again
    first = StsReport({"first": better["first"]}), StsReport({"first": worse["first"]})
    alone = compare_pairs(better["first"], worse["first"], resamples=200)
    assert compare_averages(*first, resamples=200) == alone
    with pytest.raises(DataError, match="the same tests"):
        compare_averages(one, first[0])


@pytest.mark.parametrize(
    ("seeds", "pairs", "both"), [(0.1, 0, 0), (0, 2, 0), (0, 0, 2), (0.1, 2, 2)]
)
def test_the_error_over_seeds_and_pairs_is_that_of_their_variances(seeds, pairs, both):
    """Against simulated studies of known variances; prevents noise that seeds and pairs share from
    being counted twice or three times, and noise of pairs that more seeds lower."""
    random, n, m = np.random.default_rng(0), 6, 300
    resamples = random.integers(m, size=(100, m))

    def error() -> float:
        """The squared error of one study: n seeds on m pairs."""
        one = random.normal(0, seeds, (n, 1)) + random.normal(0, pairs, m)
        one = one + random.normal(0, both, (n, m))
        scores = np.column_stack([one.mean(1), one[:, resamples].mean(2)])
        found = compare_crossed(scores, np.zeros_like(scores))
        assert found.mean == pytest.approx(one.mean())
        return found.sd**2 / n + found.pairs**2

    true = seeds**2 / n + pairs**2 / m + both**2 / (n * m)
    assert np.mean([error() for _ in range(150)]) == pytest.approx(true, rel=0.15)


def test_seeds_do_not_lower_the_error_of_the_pairs():
    """Prevents "71 seeds" for a margin that the test pairs alone exceed."""
    few = seeds_for_width(0.3, 0.2, pairs=0.05)
    assert few > seeds_for_width(0.3, 0.2)
    assert stats.t.ppf(0.975, few - 1) * math.hypot(0.3 / few**0.5, 0.05) <= 0.2
    assert seeds_for_width(0.3, 0.2, pairs=0.2, most=500) == 500
