"""Scores of all-MiniLM-L6-v2 against the published ones."""

import pytest

import cselab
from cselab.data.packages import packaged_model
from cselab.data.sts import STS7, load_sts
from cselab.evaluation import score_data

PUBLISHED = {
    **{"STS12": 72.37, "STS13": 80.60, "STS14": 75.59, "STS15": 85.39, "STS16": 78.99},
    **{"STSBenchmark": 82.03, "SICK-R": 77.58, "STS17-en-en": 87.59},
}
"""mteb's leaderboard: https://huggingface.co/sentence-transformers/all-MiniLM-L6-v2; SICK-R is of
all 9,927 pairs."""


@pytest.mark.slow
@pytest.mark.real_data
def test_the_published_encoder_has_its_published_scores(data_dir):
    """Prevents a difference in text, pooling, normalisation or correlation from everybody else."""
    if packaged_model("all-minilm-l6-v2") is None:
        pytest.skip("the extra [real] is not installed")
    pairs = [
        load_sts(task, "all" if task == "SICK-R" else "test", folder=data_dir) for task in PUBLISHED
    ]
    assert set(STS7) < PUBLISHED.keys()
    report = score_data(cselab.load("all-minilm-l6-v2").encode, pairs, resamples=0)
    scores = {task: round(score, 2) for task, score in report.scores.items()}
    assert scores == pytest.approx(PUBLISHED, abs=0.011)
