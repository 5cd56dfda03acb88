"""Evaluation: STS, transfer, retrieval, geometry, inference cost and significance tests."""

from cselab.lazy import lazy

__all__, __getattr__ = lazy(
    __name__,
    {
        "cost": "InferenceCost inference_cost twin_training_cost",
        "couples": "RankedCouples rank_couples",
        "csts": "conditional_cosines evaluate_csts follows_condition",
        "geometry": "alignment uniformity",
        "methods": "compare_methods",
        "retrieval": "RetrievalScore caption_retrieval",
        "significance": "PairComparison SeedComparison compare_averages compare_crossed"
        " compare_pairs compare_seeds paired_t_power seeds_for_width seeds_needed",
        "sts": "StsReport TaskScore evaluate_sts score_data score_pairs",
        "transfer": "evaluate_transfer",
    },
)
