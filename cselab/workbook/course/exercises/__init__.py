"""The checks of the exercises, a module a notebook."""

from cselab.workbook.course.exercises import (  # noqa: F401
    attention_and_norms,
    bellm,
    decoder_transfer,
    ensembles_and_distillation,
    evaluation,
    imsimcse,
    jtcse_training,
    languages,
    layernorm_removal,
    loss_ablations,
    loss_playground,
    paper_vs_code,
    rtt_augmentation,
    scaling_up,
    start_here,
    twin_pretraining,
    zero_shot_tasks,
)
