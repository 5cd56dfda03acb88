"""The workbook's expensive steps, each computed once and shared: text, round trips, towers, twins, scores.

Notebooks call these with their lab. What a step depends on is its key, so notebook 03 run first trains the towers that
notebook 02 shows, and run second finds them.
"""

from cselab.stages.finished import finished
from cselab.stages.scores import comparison, evaluate, geometry, over_seeds, pair_cosines, phenomena, score
from cselab.stages.text import (
    combine,
    dev_pairs,
    dev_task,
    nli_triplets,
    real_data,
    round_trip_file,
    round_trips,
    sentences,
    test_data,
    test_tasks,
    training_rows,
    view_pivot,
    world_pairs,
)
from cselab.stages.training import (
    Encode,
    Trained,
    backbone,
    backbone_encoder,
    dev_score,
    distilled,
    edfse,
    joint,
    ranked,
    sif_mean,
    single,
    supervised,
    tower,
    tower_folders,
    tower_sum,
)

__all__ = [
    "Encode",
    "Trained",
    "backbone",
    "backbone_encoder",
    "combine",
    "comparison",
    "dev_pairs",
    "dev_score",
    "dev_task",
    "distilled",
    "edfse",
    "evaluate",
    "finished",
    "geometry",
    "joint",
    "nli_triplets",
    "over_seeds",
    "pair_cosines",
    "phenomena",
    "ranked",
    "real_data",
    "round_trip_file",
    "round_trips",
    "score",
    "sentences",
    "sif_mean",
    "single",
    "supervised",
    "test_data",
    "test_tasks",
    "tower",
    "tower_folders",
    "tower_sum",
    "training_rows",
    "view_pivot",
    "world_pairs",
]
