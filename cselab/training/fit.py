"""`fit`: train a method on tokenised sentences; the dev score picks the checkpoint. Built on `transformers.Trainer`."""

import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import datasets
import torch
from transformers import PrinterCallback, TrainingArguments

from cselab.errors import DataError, SettingsError
from cselab.methods import Method
from cselab.settings import Schedule
from cselab.training.checkpoints import MarkWhole, last_whole, read_history
from cselab.training.distributed import from_first, rank_and_world, wait
from cselab.training.trainer import ContrastiveTrainer
from cselab.training.watch import Probe, Watch


@dataclass(frozen=True)
class FitResult:
    """What training did.

    history: one row per evaluation: step, dev (Spearman x100), learning_rate, alignment and uniformity of a fixed probe
        batch, and the mean of each loss term since the row before (none at step 0). best_step: the step whose weights the
        method now has; step 0 is scored but is no candidate, so that "trained" always means trained.
    seconds: of training steps, evaluations left out, in this process since it began or was resumed.
    """

    history: list[dict[str, float | int]]
    best_step: int
    best_dev: float
    seconds: float
    sentences_per_second: float

    def as_dict(self) -> dict[str, Any]:
        return dict(vars(self))


def fit(
    method: Method,
    corpus: datasets.Dataset,
    schedule: Schedule,
    *,
    dev: Callable[[Method], float],
    seed: int,
    device: torch.device | str = "cpu",
    name: str = "training",
    checkpoints: str | Path | None = None,
    logs: str | Path | None = None,
) -> FitResult:
    """Train `method` in place and leave it, in eval mode, with the weights of its best dev score.

    corpus: rows with `input_ids` (and `input_ids_b` where the second view is another text), as `tokenize_corpus` gives.
    dev: scores the method, higher is better; called before the first step and every `schedule.eval_every` steps.
    seed: decides batches, dropout and coins; the same seed on the same machine gives the same weights.
    checkpoints: a folder that outlives an interrupted run. Killed at any moment and called again, `fit` goes on from the
        last whole checkpoint (one at each evaluation) to the very same weights; the folder is removed at the end.
    logs: a folder for TensorBoard files and, should training diverge, the batch at which it did; None for neither.

    Started by `accelerate launch` or `torchrun`, the processes share each batch of `schedule.batch_size` sentences, and
    every one sees the negatives of all. One process uses one device: torch's DataParallel, which would keep the
    negatives of its devices apart, is never used.

    Raises DataError when the corpus is smaller than a batch, SettingsError for a method with a batch norm whose batch would be computed
    in parts (`schedule.chunk`, several processes), and DivergenceError when the loss is not finite or the embeddings collapse.
    """
    if len(corpus) < schedule.batch_size:
        raise DataError(
            f"the corpus has {len(corpus)} sentences, fewer than one batch of {schedule.batch_size}; "
            "give more sentences or a smaller batch"
        )
    in_parts = schedule.chunk or rank_and_world()[1] > 1
    if in_parts and any(isinstance(module, torch.nn.BatchNorm1d) for module in method.modules()):
        raise SettingsError(
            f"{type(method).__name__} has a batch norm, for which a batch in parts is not the batch; set chunk=0 and use one process"
        )
    device, logs = torch.device(device), logs and Path(logs)
    torch.set_flush_denormal(True)  # the gradients of DCL underflow, and a CPU computes such numbers far slower
    torch.manual_seed(seed)
    with _folder(checkpoints) as folder:
        resumed = last_whole(folder)
        history = read_history(resumed) if resumed else []
        arguments = _arguments(schedule, seed, device, folder)
        arguments.eval_on_start = resumed is None
        arguments.save_only_model = checkpoints is None
        method.to(arguments.device).train()
        probe = Probe(method, corpus, arguments.device)
        watch = Watch(name, schedule.steps, schedule.batch_size, None if rank_and_world()[0] else logs)
        trainer = ContrastiveTrainer(method, corpus, schedule, dev, arguments, history, probe, watch, logs)
        torch.manual_seed(seed + 1_000_003 * rank_and_world()[0])  # processes draw different dropout
        trainer.remove_callback(PrinterCallback)
        trainer.add_callback(watch)
        if checkpoints is not None:
            trainer.add_callback(MarkWhole(history))
        try:
            trainer.train(resume_from_checkpoint=resumed and str(resumed))
        finally:
            watch.close()
    method.eval()
    return FitResult(
        history=history,
        best_step=trainer.state.best_global_step,
        best_dev=trainer.state.best_metric,
        seconds=watch.seconds,
        sentences_per_second=watch.sentences_per_second,
    )


def _arguments(schedule: Schedule, seed: int, device: torch.device, folder: Path) -> TrainingArguments:
    arguments = TrainingArguments(
        output_dir=str(folder),
        max_steps=schedule.steps,
        per_device_train_batch_size=schedule.batch_size,
        learning_rate=schedule.learning_rate,
        lr_scheduler_type=schedule.decay,
        weight_decay=schedule.weight_decay,
        max_grad_norm=schedule.max_grad_norm,
        use_cpu=device.type == "cpu",
        seed=seed,
        eval_strategy="steps",
        eval_steps=schedule.eval_every,
        eval_on_start=True,
        save_strategy="steps",  # at each evaluation, when the running means of the terms have just been cleared
        save_steps=schedule.eval_every,
        save_total_limit=3,  # the best, the last, and the one before it while the last is being written
        metric_for_best_model="eval_dev",
        greater_is_better=True,
        load_best_model_at_end=True,
        logging_strategy="no",
        report_to="none",
        disable_tqdm=True,
        remove_unused_columns=False,
        dataloader_pin_memory=device.type == "cuda",
        ddp_find_unused_parameters=True,  # SimCSE's pooler, which nothing reads
    )
    arguments._n_gpu = min(arguments.n_gpu, 1)
    return arguments


@contextmanager
def _folder(checkpoints: str | Path | None) -> Iterator[Path]:
    """Where the Trainer writes, the same for all processes: gone at the end, but where it is to outlive an interruption
    only if all went well."""
    first = rank_and_world()[0] == 0
    if checkpoints is None:
        folder = Path(from_first(tempfile.mkdtemp(prefix="cselab-fit-") if first else ""))
    else:
        folder = Path(checkpoints)
        folder.mkdir(parents=True, exist_ok=True)
    try:
        yield folder
    except BaseException:
        if first and checkpoints is None:
            shutil.rmtree(folder)
        raise
    wait()
    if first:
        shutil.rmtree(folder)
