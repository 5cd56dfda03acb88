"""Complete checkpoints: the Trainer writes several files, and a kill may come between any two."""

import json
import os
import sys
from pathlib import Path

from safetensors.torch import load_file, save_file
from torch import Tensor
from transformers import TrainerCallback
from transformers.trainer_utils import PREFIX_CHECKPOINT_DIR

from cselab.methods import Method
from cselab.seals import damage, remove, seal
from cselab.training.distributed import from_first_process, rank_and_world, wait_for_all

HISTORY = "history.json"
BEST = "best.safetensors"
"""The weights of the best dev score so far."""


def trained_state(method: Method) -> dict[str, Tensor]:
    """Copies, on the processor, of all that training changes: everything but frozen weights of the
    encoder, such as those below LoRA's adapters. (A momentum encoder is frozen and changes.)"""
    parameters = method.encoder.named_parameters(prefix="encoder")
    frozen = {name for name, value in parameters if not value.requires_grad}
    # 4-bit weights have entries of their own beside them
    kept = {name for name, _ in (*method.named_parameters(), *method.named_buffers())} - frozen
    state = method.state_dict().items()
    return {k: v.detach().to("cpu", copy=True) for k, v in state if k in kept}


class Best:
    """The highest dev score so far, its step and its weights; the start, step 0, has to be higher
    than each step after it."""

    def __init__(self, method: Method, history: list[dict], resumed: Path | None):
        self.step, self.dev, self.weights = 0, float("-inf"), trained_state(method)
        for row in history:
            self._is_better(row["step"], row["dev"])
        if resumed:
            self.weights = load_file(resumed / BEST)

    def update(self, step: int, dev: float, method: Method) -> None:
        """Keep the weights of a step if its dev score is the best."""
        if self._is_better(step, dev) and step:
            self.weights = trained_state(method)

    def _is_better(self, step: int, dev: float) -> bool:
        better = dev > self.dev or (self.step == 0 and dev == self.dev)
        if better:
            self.step, self.dev = step, dev
        return better


class MarkComplete(TrainerCallback):
    """Write the history into a checkpoint, and seal it, after all processes wrote their files."""

    def __init__(self, history: list[dict]):
        self.history = history

    def write(self, folder: Path) -> None:
        """Add files to a checkpoint."""
        (folder / HISTORY).write_text(json.dumps(self.history))

    def on_save(self, args, state, control, **kwargs):
        wait_for_all()
        if not state.is_world_process_zero:
            return
        folder = Path(args.output_dir) / f"{PREFIX_CHECKPOINT_DIR}-{state.global_step}"
        self.write(folder)
        for path in folder.iterdir():  # before the seal, in case of a power cut
            with path.open("rb") as file:
                os.fsync(file.fileno())
        seal(folder)


class SaveAtEvaluations(MarkComplete):
    """Have checkpoints written at some evaluations, where the running means of the terms are empty,
    with the best weights so far.

    Args:
        every: Steps between two, rounded up to evaluations; 0: at each evaluation.
        saved: The step of the last one.
    """

    def __init__(self, history: list[dict], best: Best, every: int, saved: int):
        super().__init__(history)
        self.best, self.every, self.saved = best, every, saved

    def write(self, folder: Path) -> None:
        super().write(folder)
        save_file(self.best.weights, folder / BEST)

    def on_evaluate(self, args, state, control, **kwargs):
        if (
            state.global_step - self.saved >= max(self.every, 1)
            and not control.should_training_stop
        ):
            self.saved, control.should_save = state.global_step, True
        return control


def last_complete(folder: Path, *, before: int = sys.maxsize) -> tuple[Path | None, list[str]]:
    """The newest complete checkpoint of a step less than `before`, and why newer ones are none.

    A checkpoint is complete if every file is as it was written. Others are removed.
    """
    wait_for_all()
    return from_first_process(_last_complete(folder, before) if rank_and_world()[0] == 0 else None)


def _last_complete(folder: Path, before: int) -> tuple[Path | None, list[str]]:
    found = folder.glob(f"{PREFIX_CHECKPOINT_DIR}-[0-9]*")
    paths = {int(path.name.rpartition("-")[2]): path for path in found}
    wrong = {step: damage(path) for step, path in paths.items()}
    last = max((step for step in wrong if not wrong[step] and step < before), default=0)
    for step in wrong:
        if wrong[step]:
            remove(paths[step])
    newer = [step for step in sorted(wrong, reverse=True) if wrong[step] and step > last]
    return paths.get(last), [f"{paths[step].name}: {wrong[step]}" for step in newer]


def read_history(checkpoint: Path) -> list[dict]:
    """Rows of `FitResult.history` up to the checkpoint."""
    return json.loads((checkpoint / HISTORY).read_text())
