"""Encoders, a playground and finished runs, as the widgets take them."""

import numpy as np
import pytest

from cselab.data.sources import Source
from cselab.data.sts import StsData
from cselab.evaluation import StsReport, score_pairs
from cselab.experiments.finished import FinishedRun
from cselab.methods import create, registered
from cselab.models import SentenceEncoder, TwinEncoder
from cselab.widgets import LossPlayground


@pytest.fixture(scope="package")
def encoders(make_bert, word_tokenizer):
    """A single tower, and a twin with a cross-attention layer at 2 and 4 of 4."""
    twin = TwinEncoder(make_bert(2), make_bert(3), cael=(2, 4), tokenizer=word_tokenizer)
    return {"one": SentenceEncoder(make_bert(1), word_tokenizer).eval(), "twin": twin.eval()}


@pytest.fixture
def playground(small_backbone):
    """Of a twin with one cross-attention layer."""
    config = registered("jtcse").Config(caels=1)
    return LossPlayground(create(config, folders=[small_backbone] * 2))


@pytest.fixture(scope="package")
def runs():
    """Openers of runs by name, the two runs that they give, and the names that were opened."""
    random = np.random.default_rng(0)
    gold, texts = random.uniform(0, 5, 60), [f"sentence {i}" for i in range(60)]
    subsets = ["negation", "number", "action"] * 20
    source = Source("embedded", "synthetic")
    data = StsData("Synthetic", "test", texts, texts[::-1], gold, subsets, source)

    def run(noise, dev):
        cosines = gold + noise * random.normal(size=60)
        report = StsReport({"Synthetic": score_pairs(data, cosines, resamples=0)})
        history = [{"step": 0, "dev": 10.0}, {"step": 5, "dev": dev}]
        return FinishedRun(history, report, report.tasks["Synthetic"].by_subset)

    made, opened = {"base": run(0.5, 20.0), "other": run(2.0, 30.0)}, []

    def opener(name):
        return lambda: (opened.append(name), made[name])[1]

    return {name: opener(name) for name in (*made, "never")}, made, opened
