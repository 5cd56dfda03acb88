"""Train a method with `transformers.Trainer`; the dev score selects the checkpoint."""

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

from cselab.errors import DataError, Interrupted
from cselab.methods import Method, Schedule
from cselab.training.checkpoints import Best, SaveAtEvaluations, last_complete, read_history
from cselab.training.distributed import from_first_process, rank_and_world, wait_for_all
from cselab.training.preconditions import check_trainable, warn_of_lost_rows
from cselab.training.trainer import AfterStep, ContrastiveTrainer
from cselab.training.watch import Listener, Probe, Watch


@dataclass(frozen=True)
class FitResult:
    """Result of a training.

    Attributes:
        history: One row per evaluation: step, dev (what `dev` of `fit` returned), learning_rate,
            alignment and uniformity of a fixed probe batch, and the mean of each loss term since
            the previous row (none at step 0).
        best_step: The step whose weights the method now has, the one of the highest dev score; 0
            where each step has a lower one than the start.
        seconds: Of the training steps, without evaluations, since this process started or resumed.
    """

    history: list[dict[str, float | int]]
    best_step: int
    best_dev: float
    seconds: float
    sentences_per_second: float

    def as_dict(self) -> dict[str, Any]:
        """The fields by name, for JSON."""
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
    save_every: int = 0,
    logs: str | Path | None = None,
    listener: Listener | None = None,
) -> FitResult:
    """Train `method` in place; at the end it has the weights of its best dev score, in eval mode.

    If `accelerate launch` or `torchrun` started several processes, they share each batch of
    `schedule.batch_size` sentences, and each uses the negatives of all. One process uses one
    device. torch's DataParallel, which would separate the negatives of the devices, is never used.

    Args:
        corpus: Rows with `input_ids` (and `input_ids_b` where the second view is another text), as
            `tokenize_corpus` returns them.
        schedule: Its `max_length` is the length at which the tokenised rows were cut. A schedule
            without `steps` takes `epochs` over the rows.
        dev: Scores the method, higher is better; called before the first step and every
            `schedule.eval_every` steps.
        seed: Of batches, dropout and coins; equal seeds give equal weights on the same machine.
        name: Of the progress bar.
        checkpoints: A folder of checkpoints, for a run that may be interrupted. Called again after
            a kill, with the method as it was at first, `fit` continues from the last complete
            checkpoint, to exactly the same weights; a line names damaged ones. The folder is
            removed at the end. None: an interrupted run starts again.
        save_every: Steps between two checkpoints, which are written at evaluations; 0: at each.
        logs: A folder for TensorBoard files and, if training diverges, for the batch at which it
            did; None for neither.
        listener: Called as it trains, in the first process.

    Raises:
        DataError: If the corpus is smaller than a batch.
        SettingsError: As `cselab.training.preconditions.check_trainable`.
        DivergenceError: If the loss is not finite or the embeddings collapse.
        Interrupted: For an interrupt, with where it goes on.

    Examples:
        >>> from cselab.data import load_corpus, load_sts, tokenize_corpus
        >>> from cselab.data.hub import model_folder
        >>> from cselab.evaluation import score_data
        >>> from cselab.methods import Schedule, create
        >>> from cselab.training import fit
        >>> method = create("simcse", folders=[model_folder("tiny-bert")])
        >>> tokenizer, text = method.encoder.tokenizer, load_corpus("synthetic", limit=100)
        >>> rows = tokenize_corpus(text, tokenizer, max_length=32, cache_dir="tokens")
        >>> pairs = load_sts("Synthetic", "dev").subsample(50)
        >>> schedule = Schedule(
        ...     steps=2, batch_size=16, learning_rate=3e-5, max_length=32, eval_every=1
        ... )
        >>> def dev(method):
        ...     return score_data(method.encoder.encode, [pairs], resamples=0).average
        >>> result = fit(method, rows, schedule, dev=dev, seed=1)
        training: each step has a lower dev score than the start, which is kept
        >>> [row["step"] for row in result.history], result.best_step
        ([0, 1, 2], 0)
        >>> sorted(result.history[-1])
        ['alignment', 'dev', 'learning_rate', 'nce', 'step', 'uniformity']
    """
    if len(corpus) < schedule.batch_size:
        raise DataError(
            f"the corpus has {len(corpus)} sentences, fewer than one batch of "
            f"{schedule.batch_size}; give more sentences or a smaller batch"
        )
    device, logs = torch.device(device), Path(logs) if logs else None
    steps = schedule.steps_for(len(corpus))
    check_trainable(method, schedule, device)
    warn_of_lost_rows(method, corpus, schedule)
    # DCL's gradients underflow, and a CPU is far slower with denormal numbers
    torch.set_flush_denormal(True)
    torch.manual_seed(seed)
    with _folder(checkpoints) as folder:
        # from the last step, the Trainer would take one more before it stops
        resumed, lost = last_complete(folder, before=steps)
        history = read_history(resumed) if resumed else []
        arguments = _arguments(schedule, steps, seed, device, folder)
        arguments.eval_on_start = resumed is None
        method.to(arguments.device).train()
        best = Best(method, history, resumed)
        probe = Probe(method, corpus, arguments.device)
        probe.start = history[0]["uniformity"] if history else None
        first = rank_and_world()[0] == 0
        listener = listener if first else None
        watch = Watch(name, steps, schedule.batch_size, logs if first else None, listener)
        if first and (resumed or lost):
            where = f"resumed at step {history[-1]['step']}" if resumed else "starts again"
            print(f"{name}: {where}" + (f" ({'; '.join(lost)})" if lost else ""))
            watch.tell(history)
        trainer = ContrastiveTrainer(
            method, corpus, schedule, dev, arguments, history, best, probe, watch, logs
        )
        # each process draws other dropout masks
        torch.manual_seed(seed + 1_000_003 * rank_and_world()[0])
        trainer.remove_callback(PrinterCallback)
        trainer.add_callback(watch)
        if listener:
            listener.started(name, steps)
            trainer.add_callback(AfterStep(lambda: listener.step(name, *trainer.last_step())))
        if checkpoints is not None:
            saved = history[-1]["step"] if resumed else 0
            trainer.add_callback(SaveAtEvaluations(history, best, save_every, saved))
        try:
            trainer.train(resume_from_checkpoint=resumed and str(resumed))
        except KeyboardInterrupt:
            raise Interrupted(_interrupted(name, trainer, checkpoints)) from None
        finally:
            watch.close()
        method.load_state_dict(best.weights, strict=False)
        if first and best.step == 0:
            print(f"{name}: each step has a lower dev score than the start, which is kept")
    method.eval()
    return FitResult(
        history=history,
        best_step=best.step,
        best_dev=best.dev,
        seconds=watch.seconds,
        sentences_per_second=watch.sentences_per_second,
    )


def _interrupted(name: str, trainer: ContrastiveTrainer, checkpoints: str | Path | None) -> str:
    state = trainer.state
    kept = checkpoints and last_complete(Path(checkpoints), before=state.max_steps)[0]
    start = read_history(kept)[-1]["step"] if kept else 0
    text = f"{name}: interrupted at step {state.global_step} of {state.max_steps}"
    return f"{text}; run it again to {f'go on from step {start}' if start else 'start again'}"


def _arguments(
    schedule: Schedule, steps: int, seed: int, device: torch.device, folder: Path
) -> TrainingArguments:
    arguments = TrainingArguments(
        output_dir=str(folder),
        max_steps=steps,
        per_device_train_batch_size=schedule.batch_size,
        learning_rate=schedule.learning_rate,
        lr_scheduler_type={"constant": "constant_with_warmup"}.get(schedule.decay, schedule.decay),
        warmup_steps=schedule.warmup,
        weight_decay=schedule.weight_decay,
        max_grad_norm=schedule.max_grad_norm,
        use_cpu=device.type == "cpu",
        seed=seed,
        eval_strategy="steps",
        eval_steps=schedule.eval_every,
        eval_on_start=True,
        save_strategy="no",  # `SaveAtEvaluations` has them written
        save_total_limit=2,  # the previous one, while the last is being written
        logging_strategy="no",
        report_to="none",
        disable_tqdm=True,
        remove_unused_columns=False,
        dataloader_pin_memory=device.type == "cuda",
        ddp_find_unused_parameters=True,  # SimCSE does not use the pooler
    )
    arguments._n_gpu = min(arguments.n_gpu, 1)
    return arguments


@contextmanager
def _folder(checkpoints: str | Path | None) -> Iterator[Path]:
    """The Trainer's folder, of all processes; removed at the end, but `checkpoints` not after an
    error."""
    first = rank_and_world()[0] == 0
    if checkpoints is None:
        folder = Path(from_first_process(tempfile.mkdtemp(prefix="cselab-fit-") if first else ""))
    else:
        folder = Path(checkpoints)
        folder.mkdir(parents=True, exist_ok=True)
    try:
        yield folder
    except BaseException:
        if first and checkpoints is None:
            shutil.rmtree(folder)
        raise
    wait_for_all()
    if first:
        shutil.rmtree(folder)
