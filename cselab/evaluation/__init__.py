"""Evaluation: STS, transfer, retrieval, geometry, inference cost and significance tests.

Names are imported when first used, so that a training does not wait for scikit-learn and pandas.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
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
    from cselab.evaluation.transfer import evaluate_transfer

_MODULES = ("geometry", "sts", "csts", "significance", "methods", "retrieval", "cost", "transfer")
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


def __getattr__(name: str) -> Any:
    """Import a name from the first module that has it."""
    for module in _MODULES if name in __all__ else ():
        if hasattr(found := importlib.import_module(f"{__name__}.{module}"), name):
            return getattr(found, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
