"""Analyses of trained encoders that one chapter each shows: degradation, dependency, words."""

from cselab.workbook.analysis.degradation import layer_scores
from cselab.workbook.analysis.dependency import (
    TURNING_POINTS,
    sentence_dependency,
    token_dependency,
)
from cselab.workbook.analysis.occlusion import CosineByToken, cosine_by_token
from cselab.workbook.analysis.rank import correlation_rank
from cselab.workbook.analysis.tokens import token_labels
from cselab.workbook.analysis.words import frequent_words, load_head, representative_words

__all__ = [
    "TURNING_POINTS",
    "CosineByToken",
    "correlation_rank",
    "cosine_by_token",
    "frequent_words",
    "layer_scores",
    "load_head",
    "representative_words",
    "sentence_dependency",
    "token_dependency",
    "token_labels",
]
