"""Which checkpoints of an interrupted run are whole: the Trainer writes many files, and a kill may come between any two."""

import json
import os
import shutil
from pathlib import Path

from transformers import TrainerCallback
from transformers.trainer_utils import PREFIX_CHECKPOINT_DIR

from cselab.training.distributed import rank_and_world, wait

HISTORY = "history.json"
"""Written last, under its name only when complete: a checkpoint that has it is whole."""


class MarkWhole(TrainerCallback):
    """Writes the history so far into a checkpoint once the Trainer, on all processes, has written all its files."""

    def __init__(self, history: list[dict]):
        self.history = history

    def on_save(self, args, state, control, **kwargs):
        wait()
        if not state.is_world_process_zero:
            return
        folder = Path(args.output_dir) / f"{PREFIX_CHECKPOINT_DIR}-{state.global_step}"
        for path in folder.iterdir():  # a power cut may not lose what the mark vouches for
            with path.open("rb") as file:
                os.fsync(file.fileno())
        temporary = folder / f".{HISTORY}"
        temporary.write_text(json.dumps(self.history))
        os.replace(temporary, folder / HISTORY)


def last_whole(folder: Path) -> Path | None:
    """The newest whole checkpoint in `folder`; half-written ones are removed."""
    wait()
    whole = {}
    for path in folder.glob(f"{PREFIX_CHECKPOINT_DIR}-*"):
        if (path / HISTORY).is_file():
            whole[int(path.name.rsplit("-", 1)[1])] = path
        elif rank_and_world()[0] == 0:
            shutil.rmtree(path)
    return whole[max(whole)] if whole else None


def read_history(checkpoint: Path) -> list[dict]:
    """The rows of `FitResult.history` up to the checkpoint."""
    return json.loads((checkpoint / HISTORY).read_text())
