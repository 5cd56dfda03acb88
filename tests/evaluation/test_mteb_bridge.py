"""mteb, fed from a folder, prints what `evaluate_sts` prints."""

import json

import pytest
from datasets import Dataset

from cselab.data.sts import STS7
from cselab.evaluation import evaluate_sts
from cselab.models import SentenceEncoder


@pytest.fixture
def encoder(make_bert, word_tokenizer):
    return SentenceEncoder(make_bert(3), word_tokenizer, pooling="mean").eval()


@pytest.mark.parametrize(
    "names", [("STS16", "STSBenchmark"), pytest.param(STS7, marks=pytest.mark.slow)]
)
def test_mteb_gives_our_scores_and_its_files(names, encoder, data_dir, tmp_path):
    """Prevents pairs in another order, other ratings, a stale cached score, and a hub that is
    asked."""
    from cselab.evaluation import mteb_bridge

    split = {"SICK-R": "all"} if "SICK-R" in names else "test"
    for _ in range(2):  # the second run may not read the first one's files
        result = mteb_bridge.run_mteb(
            encoder, "cselab/test", mteb_bridge.sts_tasks(names, folder=data_dir), tmp_path
        )
    ours = evaluate_sts(encoder.encode, names, split=split, folder=data_dir, resamples=0)
    for task in result.task_results:
        scores = task.scores["test"][0]
        assert 100 * scores["cosine_spearman"] == pytest.approx(
            ours.scores[task.task_name], abs=1e-2
        )
        assert 100 * scores["cosine_pearson"] == pytest.approx(
            ours.tasks[task.task_name].pearson, abs=1e-2
        )
    (file,) = tmp_path.rglob("STS16.json")
    assert json.loads(file.read_text())["task_name"] == "STS16"
    assert "cselab__test" in str(file)


def test_any_task_can_be_fed(encoder, tmp_path):
    """Prevents a bridge that knows STS alone, and a task that asks the hub for its data."""
    import mteb

    from cselab.evaluation.mteb_bridge import feed, run_mteb

    rows = {"text": ["a man is eating", "the dog was running"] * 20, "label": [0, 1] * 20}
    task = feed(
        mteb.get_task("Banking77Classification"),
        {s: Dataset.from_dict(rows) for s in ("train", "test")},
    )
    result = run_mteb(encoder, "cselab/test", [task], tmp_path)
    assert result.task_results[0].scores["test"][0]["accuracy"] == 1.0
