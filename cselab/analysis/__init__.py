"""Numbers about trained encoders; no drawing."""

from cselab.analysis.degradation import layer_scores
from cselab.analysis.dependency import PIVOTS, sentence_dependency, token_dependency
from cselab.analysis.rank import correlation_rank

__all__ = ["PIVOTS", "correlation_rank", "layer_scores", "sentence_dependency", "token_dependency"]
