"""STS scores against hand-made cases: aggregation, distinct sentences, geometry."""

import hashlib
import math

import numpy as np
import pytest
import torch
from cselab.data.sources import Source
from cselab.data.sts import STS7, StsData
from cselab.errors import DataError
from cselab.evaluation import alignment, evaluate_sts, uniformity
from cselab.evaluation.sts import score_pairs


def _data(scores, subsets):
    n = len(scores)
    texts = [f"s{i}" for i in range(n)]
    return StsData("T", "test", texts, texts, np.array(scores, float), subsets, Source("folder", "x"))


def _rank_correlation(x, y):
    """Spearman by hand: Pearson of average ranks."""
    def ranks(values):
        return [sum(v < u for v in values) + (sum(v == u for v in values) - 1) / 2 for u in values]

    a, b = ranks(x), ranks(y)
    ma, mb = sum(a) / len(a), sum(b) / len(b)
    return sum((p - ma) * (q - mb) for p, q in zip(a, b, strict=True)) / math.sqrt(
        sum((p - ma) ** 2 for p in a) * sum((q - mb) ** 2 for q in b)
    )


def test_all_mean_and_wmean_are_different_things():
    """Two subsets, each ranked perfectly, on different scales: "mean" hides what "all" shows (a repeated confusion)."""
    gold = [1, 2, 3, 1, 2, 3, 4, 5]
    cosines = np.array([0.1, 0.2, 0.3, 0.5, 0.6, 0.7, 0.8, 0.4])
    score = score_pairs(_data(gold, ["a"] * 3 + ["b"] * 5), cosines)
    assert score.by_subset["a"] == pytest.approx(100)
    assert score.by_subset["b"] == pytest.approx(100 * _rank_correlation(cosines[3:], gold[3:]))
    assert score.spearman == pytest.approx(100 * _rank_correlation(cosines, gold))
    assert score.mean == pytest.approx((100 + score.by_subset["b"]) / 2)
    assert score.wmean == pytest.approx((3 * 100 + 5 * score.by_subset["b"]) / 8)
    assert len({round(value, 6) for value in (score.spearman, score.mean, score.wmean)}) == 3


def test_the_interval_holds_the_score_and_shrinks_with_pairs():
    random = np.random.default_rng(0)
    widths = []
    for n in (50, 800):
        gold = random.uniform(0, 5, n)
        score = score_pairs(_data(gold, [""] * n), gold + random.normal(0, 2, n))
        assert score.low < score.spearman < score.high
        widths.append(score.high - score.low)
    assert widths[0] / widths[1] == pytest.approx(4, rel=0.35)  # one over the root of 16


def _hash_encoder(calls):
    def encode(sentences):
        calls.extend(sentences)
        rows = [np.frombuffer(hashlib.sha256(s.encode()).digest(), np.uint8) for s in sentences]
        return np.stack(rows).astype(float) - 127

    return encode


@pytest.mark.real_data
def test_each_distinct_sentence_is_encoded_once(data_dir):
    """STS-B is drawn from STS12 to 17, and pairs share sentences: encoding pair by pair does the work twice."""
    calls = []
    report = evaluate_sts(_hash_encoder(calls), folder=data_dir)
    assert len(calls) == len(set(calls))
    assert list(report.scores) == list(STS7)
    assert all(abs(score) < 10 for score in report.scores.values())  # a hash knows no meaning
    assert report.average == pytest.approx(np.mean(list(report.scores.values())))


@pytest.mark.real_data
def test_score_is_that_of_cosines_in_the_file_order(data_dir):
    from cselab.data.sts import load_sts

    data = load_sts("STS16", folder=data_dir)
    report = evaluate_sts(_hash_encoder([]), ["STS16"], folder=data_dir)
    encode = _hash_encoder([])
    a, b = encode(data.sentences1), encode(data.sentences2)
    cosines = [x @ y / np.linalg.norm(x) / np.linalg.norm(y) for x, y in zip(a, b, strict=True)]
    assert report.scores["STS16"] == pytest.approx(100 * _rank_correlation(cosines, data.scores.tolist()), abs=1e-6)


def test_rows_of_zero_and_bad_outputs(monkeypatch):
    monkeypatch.setattr("cselab.evaluation.sts.load_sts", lambda *a, **k: _data([1, 2, 3, 4], [""] * 4))
    with pytest.raises(DataError, match=r"returned shape \(3, 2\) for 4 sentences; expected \(4, d\)"):
        evaluate_sts(lambda texts: np.ones((3, 2)), ["T"])
    with pytest.raises(DataError, match="returned NaN or infinity for 1 of 4 sentences"):
        evaluate_sts(lambda texts: torch.tensor([[1.0, 2], [math.nan, 1], [1, 1], [2, 1]]), ["T"])
    assert evaluate_sts(lambda texts: torch.tensor([[0.0, 0], [1, 0], [1, 1], [0, 1]]), ["T"]).tasks["T"].data.split == "test"


def test_alignment_and_uniformity_closed_forms():
    """Both normalise inside: rows scaled by any length give the same (six threads ask)."""
    x = torch.eye(4)
    assert alignment(x, 7 * x).item() == pytest.approx(0)
    assert alignment(x, -x).item() == pytest.approx(4)
    assert alignment(x, x.roll(1, 0)).item() == pytest.approx(2)
    assert uniformity(x * torch.tensor([1.0, 2, 3, 4])[:, None]).item() == pytest.approx(-4)  # all at distance sqrt 2
    assert uniformity(torch.ones(5, 3)).item() == pytest.approx(0, abs=1e-6)
    pair = torch.tensor([[1.0, 0], [-1, 0]])
    assert uniformity(pair, t=1.0).item() == pytest.approx(-4)
    with pytest.raises(DataError, match="uniformity compares pairs of sentences, got 1"):
        uniformity(torch.ones(1, 3))
