"""Analysis of trained encoders: attention, norms, ranks and token dependency, as numbers."""

from cselab.analysis.attention import (
    CLASSES,
    Trace,
    attention_sink,
    cls_energy,
    context_energy,
    read_lengths,
    received_attention,
    token_classes,
    trace,
)
from cselab.analysis.degradation import layer_scores
from cselab.analysis.dependency import TURNING_POINTS, sentence_dependency, token_dependency
from cselab.analysis.norms import Norms, vector_norms
from cselab.analysis.occlusion import CosineByToken, cosine_by_token
from cselab.analysis.rank import correlation_rank
from cselab.analysis.tokens import token_labels
from cselab.analysis.words import frequent_words, load_head, representative_words

__all__ = [
    "CLASSES",
    "TURNING_POINTS",
    "CosineByToken",
    "Norms",
    "Trace",
    "attention_sink",
    "cls_energy",
    "context_energy",
    "correlation_rank",
    "cosine_by_token",
    "frequent_words",
    "layer_scores",
    "load_head",
    "read_lengths",
    "received_attention",
    "representative_words",
    "sentence_dependency",
    "token_classes",
    "token_dependency",
    "token_labels",
    "trace",
    "vector_norms",
]
