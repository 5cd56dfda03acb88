"""Evaluation: STS, transfer, retrieval, geometry, inference cost and significance tests."""

from cselab.evaluation.cost import (
    InferenceCost,
    encoder_cost,
    inference_cost,
    sentences_per_second,
    twin_training_cost,
)
from cselab.evaluation.csts import conditional_cosines, evaluate_csts, follows_condition
from cselab.evaluation.geometry import alignment, uniformity
from cselab.evaluation.methods import compare_methods
from cselab.evaluation.retrieval import RetrievalScore, caption_retrieval
from cselab.evaluation.significance import (
    PairComparison,
    SeedComparison,
    compare_averages,
    compare_pairs,
    compare_seeds,
    paired_t_power,
    seeds_for_width,
    seeds_needed,
)
from cselab.evaluation.sts import StsReport, TaskScore, evaluate_sts, score_data, score_pairs

__all__ = [
    "InferenceCost",
    "PairComparison",
    "RetrievalScore",
    "SeedComparison",
    "StsReport",
    "TaskScore",
    "alignment",
    "caption_retrieval",
    "compare_averages",
    "compare_methods",
    "compare_pairs",
    "compare_seeds",
    "conditional_cosines",
    "encoder_cost",
    "evaluate_csts",
    "evaluate_sts",
    "evaluate_transfer",
    "follows_condition",
    "inference_cost",
    "paired_t_power",
    "score_data",
    "score_pairs",
    "seeds_for_width",
    "seeds_needed",
    "sentences_per_second",
    "twin_training_cost",
    "uniformity",
]


def __getattr__(name: str):
    """Import `evaluate_transfer`, and scikit-learn with it, on first use."""
    if name == "evaluate_transfer":
        from cselab.evaluation.transfer import evaluate_transfer

        return evaluate_transfer
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
