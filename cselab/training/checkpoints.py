"""Complete checkpoints: the Trainer writes several files, and a kill may come between any two."""

import json
import os
import sys
from pathlib import Path

from transformers import TrainerCallback
from transformers.trainer_utils import PREFIX_CHECKPOINT_DIR

from cselab.seals import damage, remove, seal
from cselab.training.distributed import from_first_process, rank_and_world, wait_for_all

HISTORY = "history.json"
STATE = "trainer_state.json"
"""The Trainer's own; it names the step of the best weights."""


class MarkComplete(TrainerCallback):
    """Write the history into a checkpoint, and seal it, after all processes wrote their files."""

    def __init__(self, history: list[dict]):
        self.history = history

    def on_save(self, args, state, control, **kwargs):
        wait_for_all()
        if not state.is_world_process_zero:
            return
        folder = Path(args.output_dir) / f"{PREFIX_CHECKPOINT_DIR}-{state.global_step}"
        (folder / HISTORY).write_text(json.dumps(self.history))
        for path in folder.iterdir():  # before the seal, in case of a power cut
            with path.open("rb") as file:
                os.fsync(file.fileno())
        seal(folder)


def last_complete(folder: Path, *, before: int = sys.maxsize) -> tuple[Path | None, list[str]]:
    """The newest complete checkpoint of a step less than `before`, and why newer ones are none.

    A checkpoint is complete if every file is as it was written, and those of the checkpoint with
    the best weights so far. Others are removed.
    """
    wait_for_all()
    return from_first_process(_last_complete(folder, before) if rank_and_world()[0] == 0 else None)


def _last_complete(folder: Path, before: int) -> tuple[Path | None, list[str]]:
    found = folder.glob(f"{PREFIX_CHECKPOINT_DIR}-[0-9]*")
    paths = {int(path.name.rpartition("-")[2]): path for path in found}
    wrong = {step: damage(path) for step, path in paths.items()}
    for step in [step for step in wrong if not wrong[step]]:
        best = json.loads((paths[step] / STATE).read_text())["best_global_step"]
        if best and wrong.get(best, "missing"):
            wrong[step] = f"checkpoint-{best}, the best so far, is damaged or missing"
    last = max((step for step in wrong if not wrong[step] and step < before), default=0)
    for step in wrong:
        if wrong[step]:
            remove(paths[step])
    newer = [step for step in sorted(wrong, reverse=True) if wrong[step] and step > last]
    return paths.get(last), [f"{paths[step].name}: {wrong[step]}" for step in newer]


def read_history(checkpoint: Path) -> list[dict]:
    """Rows of `FitResult.history` up to the checkpoint."""
    return json.loads((checkpoint / HISTORY).read_text())
