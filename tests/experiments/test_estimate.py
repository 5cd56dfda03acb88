"""Work and disk of runs before they are done."""

import pytest
from transformers import BertConfig

from cselab.evaluation import inference_cost
from cselab.experiments.estimate import estimate
from cselab.experiments.grid import expand

BERT = 109_482_240
"""Parameters of BERT-base with its pooler."""


def test_the_estimate_is_that_of_the_schedule_and_counts_a_shared_training_once():
    """Prevents steps that ignore the size of the text, towers that two twins pay for twice, and a
    seed that costs nothing."""

    def cost(**grid):
        return estimate(expand({"profile": "paper", **grid}))

    one = cost(methods="simcse")
    gmacs = inference_cost(BertConfig(), length=32).with_attention
    texts = 2 * 64 * (1_000_000 // 64)
    assert one.flop == pytest.approx(3 * 2e9 * gmacs * texts)
    assert (one.trainings, one.kept, one.working) == (1, 4 * BERT, 2 * 16 * BERT)
    towers = cost(methods="sum")
    assert towers.flop == pytest.approx(4 * one.flop, rel=1e-4)  # two, and their round trips
    assert towers.kept == 2 * one.kept
    both = cost(methods=["tncse", "jtcse"])
    assert (both.trainings, both.kept) == (4, 2 * 3 * one.kept)
    assert cost(methods="simcse", seeds="1-3").flop == pytest.approx(3 * one.flop)
    assert cost(methods="simcse", sentences=500_000).flop == pytest.approx(one.flop / 2, rel=1e-3)
    assert cost(methods="untrained").trainings == 0
