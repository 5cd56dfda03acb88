"""STS scores against brute force: ranks, aggregation over subsets, intervals, one encoding a
sentence."""

import json
import math

import numpy as np
import pytest
import torch
from scipy.stats import spearmanr

from cselab.data.sources import Source
from cselab.data.sts import STS7, StsData
from cselab.errors import DataError
from cselab.evaluation import StsReport, evaluate_sts, score_data, score_pairs


def pairs(scores, subsets=None, task="T", sentences=None):
    texts = sentences or ([f"{task} {side}{i}" for i in range(len(scores))] for side in "ab")
    source = Source("embedded", "test")
    return StsData(task, "test", *texts, np.asarray(scores, float), subsets, source)


def ranks(values):
    """Average ranks by counting."""
    return [
        sum(v < value for v in values) + (sum(v == value for v in values) + 1) / 2
        for value in values
    ]


def correlation(x, y):
    mean_x, mean_y = sum(x) / len(x), sum(y) / len(y)
    covariance = sum((a - mean_x) * (b - mean_y) for a, b in zip(x, y, strict=True))
    variances = sum((a - mean_x) ** 2 for a in x) * sum((b - mean_y) ** 2 for b in y)
    return covariance / math.sqrt(variances)


@pytest.fixture
def tasks(monkeypatch):
    """`tasks({name: data})` replaces what is loaded."""

    def use(data):
        monkeypatch.setattr("cselab.evaluation.sts.load_sts", lambda task, *_, **__: data[task])
        return tuple(data)

    return use


def test_spearman_and_pearson_with_ties_against_brute_force():
    """Prevents ties that are broken by order."""
    random = np.random.default_rng(0)
    gold, similarities = random.integers(0, 6, 60) / 1.0, random.integers(-8, 9, 60) / 10
    score = score_pairs(pairs(gold), similarities)
    assert score.spearman == pytest.approx(100 * correlation(ranks(similarities), ranks(gold)))
    assert score.pearson == pytest.approx(100 * correlation(similarities, gold))


def test_all_mean_and_wmean_over_subsets():
    """Prevents the mean over subsets for the papers' "all"; here they have opposite signs."""
    gold = [0, 1, 2, 3, 4, 5, 4, 3, 2]
    similarities = np.array([0.7, 0.8, 0.9, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6])
    score = score_pairs(pairs(gold, ["x"] * 3 + ["y"] * 3 + ["z"] * 3), similarities)
    assert score.by_subset == pytest.approx({"x": 100, "y": 100, "z": -100})
    assert score.mean == pytest.approx(100 / 3)
    assert score.spearman == pytest.approx(100 * correlation(ranks(similarities), ranks(gold)))
    assert score.spearman < 0
    uneven = score_pairs(pairs(gold, ["x"] * 6 + ["z"] * 3), similarities)
    parts = [100 * correlation(ranks(similarities[:6]), ranks(gold[:6])), -100]
    assert uneven.mean == pytest.approx(sum(parts) / 2)
    assert uneven.wmean == pytest.approx((6 * parts[0] + 3 * parts[1]) / 9)
    whole = score_pairs(pairs(gold), similarities)
    assert whole.mean == whole.wmean == whole.spearman
    assert whole.by_subset == {}


def test_a_subset_of_equal_ratings_has_no_score_and_does_not_spoil_the_means():
    """Prevents NaN in the mean over subsets, and a 0 for what has no correlation."""
    subsets = ["x"] * 3 + ["same"] * 2
    score = score_pairs(pairs([1, 2, 3, 5, 5], subsets), np.array([0.1, 0.2, 0.3, 0.4, 0.5]))
    assert math.isnan(score.by_subset["same"])
    assert score.mean == score.wmean == pytest.approx(100)
    nothing = score_pairs(pairs([5, 5], ["same"] * 2), np.array([0.4, 0.5]))
    assert all(map(math.isnan, (nothing.spearman, nothing.mean, nothing.low)))


@pytest.mark.parametrize(
    "collapsed",
    [
        lambda n: np.ones((n, 4)),
        lambda n: np.zeros((n, 4)),
        lambda n: np.outer(np.linspace(0.1, 9, n), [1.0, 2.0, 3.0]),
    ],
)
def test_a_collapsed_model_scores_zero_and_it_is_said(collapsed, tasks):
    """Prevents NaN as the score that picks checkpoints, and last bits of equal cosines as ranks."""
    names = tasks({"T": pairs(range(6))})
    with pytest.warns(UserWarning, match="T test: every pair has the cosine [01]") as warned:
        report = evaluate_sts(lambda sentences: collapsed(len(sentences)), names)
    assert report.scores == {"T": 0.0}
    assert len(warned) == 1  # not scipy's of its own


def test_the_interval_is_the_percentile_bootstrap_of_spearman():
    """Prevents keeping the whole set's ranks in the resamples, which gives another interval."""
    random = np.random.default_rng(1)
    x = random.normal(size=80)
    gold = np.round(x + random.normal(size=80)).clip(-2, 2) + 2
    score = score_pairs(pairs(gold), x.round(1), resamples=200)
    draws = np.random.default_rng(0)
    resampled = []
    for _ in range(200):
        rows = draws.integers(80, size=80)
        resampled.append(spearmanr(x.round(1)[rows], gold[rows]).statistic)
    interval = 100 * np.percentile(resampled, [2.5, 97.5])
    assert [score.low, score.high] == pytest.approx(interval.tolist())
    assert score.low < score.spearman < score.high
    assert math.isnan(score_pairs(pairs(gold), x, resamples=0).low)


def test_each_distinct_sentence_is_encoded_once(tasks):
    """Prevents encoding a sentence again for every pair and task it is in."""
    one = pairs([1, 2, 3], task="one", sentences=(["a", "b", "a"], ["c", "a", "d"]))
    two = pairs([1, 2], task="two", sentences=(["a", "e"], ["c", "c"]))
    calls = []

    def encode(sentences):
        calls.append(sentences)
        return torch.tensor([[ord(s) * 1.0, (ord(s) % 7) ** 2] for s in sentences])

    report = evaluate_sts(encode, tasks({"one": one, "two": two}))
    assert calls == [["a", "b", "c", "d", "e"]]

    def cosine(a, b):
        a, b = (np.array([ord(s), (ord(s) % 7) ** 2.0]) for s in (a, b))
        return a @ b / np.linalg.norm(a) / np.linalg.norm(b)

    expected = correlation(ranks([cosine("a", "c"), cosine("b", "a"), cosine("a", "d")]), [1, 2, 3])
    assert report.scores["one"] == pytest.approx(100 * expected)
    assert report.average == pytest.approx((report.scores["one"] + report.scores["two"]) / 2)


@pytest.mark.parametrize(
    "convert",
    [
        lambda x: x,
        lambda x: x.tolist(),
        lambda x: torch.tensor(x, requires_grad=True),
        lambda x: torch.tensor(x).bfloat16(),
        lambda x: 100 * x.astype(np.float16),
    ],
)
def test_arrays_and_tensors_of_any_precision_will_do(convert, tasks):
    """Prevents cosines that are computed in half precision."""
    vectors = np.arange(1, 17).reshape(8, 2) % 5 + np.eye(8, 2)
    names = tasks({"T": pairs([0, 1, 2, 4])})
    exact = evaluate_sts(lambda sentences: vectors, names).scores
    assert evaluate_sts(lambda sentences: convert(vectors), names).scores == pytest.approx(exact)


@pytest.mark.parametrize(
    ("vectors", "message"),
    [
        (np.ones((7, 2)), r"shape \(7, 2\) for 8 sentences; expected \(8, d\)"),
        (np.ones(8), r"shape \(8,\) for 8 sentences"),
        ([[1.0, 2.0]] * 7 + [[1.0]], "rows of different lengths for 8 sentences"),
        (np.full((8, 2), np.nan), "NaN or infinity for 8 of 8 sentences"),
        (torch.tensor([[1.0, math.inf]] * 8), "NaN or infinity for 8 of 8"),
    ],
)
def test_bad_embeddings_are_refused(vectors, message, tasks):
    """Prevents a score of a diverged model, and vectors that are broadcast."""
    names = tasks({"T": pairs([0, 1, 2, 4])})
    with pytest.raises(DataError, match=message):
        evaluate_sts(lambda sentences: vectors, names)


def test_tasks_and_splits_must_agree_and_names_differ():
    """Prevents a mistyped task in `split`, and two files of one name as one score, in silence."""
    for tasks, split in [((), "test"), (("STS12",), {"SICK": "all"})]:
        with pytest.raises(DataError, match="got splits of"):
            evaluate_sts(len, tasks, split=split)
    with pytest.raises(DataError, match="two test sets are called 'my'; rename a file"):
        score_data(len, [pairs([0, 1, 2], task="my"), pairs([0, 1, 5], task="my")])


def test_the_report_as_rows_table_and_page(tasks):
    """Prevents a row that cannot be traced to its data, and another average in the table."""
    data = {
        "Synthetic": pairs(range(5), ["x", "x", "x", "y", "y"], "Synthetic"),
        "STS12": pairs(range(4), task="STS12"),
    }
    vectors = np.random.default_rng(0).normal(size=(18, 3))
    report = evaluate_sts(lambda sentences: vectors, tasks(data))
    rows = report.to_rows()
    assert [(row["task"], row["n"]) for row in rows] == [("Synthetic", 5), ("STS12", 4)]
    assert rows[0]["score"] == report.scores["Synthetic"]
    assert rows[0]["data_fingerprint"] == data["Synthetic"].fingerprint
    json.dumps(rows)
    assert report.tasks["Synthetic"].by_subset == rows[0]["by_subset"]
    frame = report.to_frame()
    assert frame.loc["average", "score"] == report.average
    assert frame.loc["average", "n"] == 9
    assert f"{report.average:.2f}" in str(report)
    assert "embedded (test)" in str(report)
    assert f"<td>{report.average:.2f}</td>" in report._repr_html_()


@pytest.mark.real_data
def test_the_seven_tasks_from_bags_of_words(data_dir):
    """Word overlap scores 35 to 75 everywhere; prevents ratings shifted against their pairs."""
    from sklearn.feature_extraction.text import HashingVectorizer

    def encode(sentences):
        return HashingVectorizer(n_features=512, norm=None).transform(sentences).toarray()

    report = evaluate_sts(encode, folder=data_dir, resamples=0)
    assert tuple(report.scores) == STS7
    assert all(35 < score < 75 for score in report.scores.values())
    # "all" is not the mean
    assert abs(report.tasks["STS12"].spearman - report.tasks["STS12"].mean) > 1
    options = {"folder": data_dir, "text": "senteval", "split": {"SICK-R": "all"}}
    lower = evaluate_sts(encode, **options, resamples=0)
    assert len(lower.tasks["SICK-R"].data) == 9927
    assert lower.scores["STSBenchmark"] == report.scores["STSBenchmark"]
    assert lower.scores["STS12"] != report.scores["STS12"]


def test_scores_without_captions_are_those_of_the_other_pairs():
    """Prevents a caption that still counts, and a score of captions alone."""
    random = np.random.default_rng(0)
    gold, cosines = random.integers(0, 6, 40) / 1.0, random.normal(size=40)
    subsets = (["images", "main-captions/MSRvid", "headlines", "main-news/headlines"] * 10)[:40]
    other = np.array([name.endswith("headlines") for name in subsets])
    data = [pairs(gold, subsets, "STS14"), pairs(gold, None, "SICK-R"), pairs(gold, None, "STS16")]
    data.append(pairs([1.0, 2.0], ["images", "forum"], "STS15"))
    scores = {one.task: score_pairs(one, cosines[: len(one)], resamples=0) for one in data}
    report = StsReport(scores).without_captions()
    assert list(report.tasks) == ["STS14", "STS16"]
    assert len(report.tasks["STS14"].data) == 20
    expected = 100 * spearmanr(cosines[other], gold[other]).statistic
    assert report.scores["STS14"] == pytest.approx(expected)
    assert report.scores["STS16"] == pytest.approx(100 * spearmanr(cosines, gold).statistic)
