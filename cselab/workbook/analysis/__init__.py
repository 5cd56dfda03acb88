"""Analyses of trained encoders that one chapter each shows: degradation, dependency, words."""

from cselab.lazy import lazy

__all__, __getattr__ = lazy(
    __name__,
    {
        "degradation": "layer_scores layers_after_turning_point",
        "dependency": "TURNING_POINTS sentence_dependency token_dependency",
        "occlusion": "CosineByToken cosine_by_token",
        "tokens": "token_labels",
        "words": "frequent_words load_head representative_words",
    },
)
