"""Complete checkpoints: the Trainer writes several files, and a kill may come between any two."""

import json
import os
import shutil
import sys
from pathlib import Path

from transformers import TrainerCallback
from transformers.trainer_utils import PREFIX_CHECKPOINT_DIR

from cselab.paths import replacing
from cselab.training.distributed import rank_and_world, wait_for_all

HISTORY = "history.json"
"""Written last and atomically: a checkpoint that contains it is complete."""


class MarkComplete(TrainerCallback):
    """Write the history into a checkpoint after all processes have written their files."""

    def __init__(self, history: list[dict]):
        self.history = history

    def on_save(self, args, state, control, **kwargs):
        wait_for_all()
        if not state.is_world_process_zero:
            return
        folder = Path(args.output_dir) / f"{PREFIX_CHECKPOINT_DIR}-{state.global_step}"
        for path in folder.iterdir():  # before the mark, in case of a power cut
            with path.open("rb") as file:
                os.fsync(file.fileno())
        with replacing(folder / HISTORY) as work:
            work.write_text(json.dumps(self.history))


def last_complete(folder: Path, *, before: int = sys.maxsize) -> Path | None:
    """The newest complete checkpoint of a step less than `before`; removes incomplete ones."""
    wait_for_all()
    complete = {}
    for path in folder.glob(f"{PREFIX_CHECKPOINT_DIR}-*"):
        if (path / HISTORY).is_file():
            complete[int(path.name.rsplit("-", 1)[1])] = path
        elif rank_and_world()[0] == 0:
            shutil.rmtree(path)
    steps = [step for step in complete if step < before]
    return complete[max(steps)] if steps else None


def remove_checkpoints(folder: Path) -> None:
    """Remove a folder of checkpoints, their marks first: a kill may come between any two files."""
    for mark in folder.glob(f"{PREFIX_CHECKPOINT_DIR}-*/{HISTORY}"):
        mark.unlink()
    shutil.rmtree(folder)


def read_history(checkpoint: Path) -> list[dict]:
    """Rows of `FitResult.history` up to the checkpoint."""
    return json.loads((checkpoint / HISTORY).read_text())
