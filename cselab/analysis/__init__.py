"""Numbers about trained encoders; no drawing."""

from cselab.analysis.dependency import PIVOTS, sentence_dependency, token_dependency

__all__ = ["PIVOTS", "sentence_dependency", "token_dependency"]
