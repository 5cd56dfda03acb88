"""Evaluation: STS scores and the geometry behind them."""

from cselab.evaluation.geometry import alignment, uniformity
from cselab.evaluation.sts import StsReport, TaskScore, evaluate_sts, score_pairs

__all__ = ["StsReport", "TaskScore", "alignment", "evaluate_sts", "score_pairs", "uniformity"]
