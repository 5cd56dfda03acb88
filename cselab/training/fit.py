"""`fit`: train a method on tokenised sentences; the dev score picks the checkpoint. Built on `transformers.Trainer`."""

import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import datasets
import torch
from torch.utils.data import DataLoader
from transformers import PrinterCallback, Trainer, TrainerCallback, TrainingArguments

from cselab.data.batching import BucketedBatchSampler, TwoViewCollator
from cselab.errors import DataError
from cselab.methods import Method, StepContext
from cselab.settings import Schedule
from cselab.training.checkpoints import MarkWhole, last_whole, read_history
from cselab.training.progress import progress_bar


@dataclass(frozen=True)
class FitResult:
    """What training did.

    history: one row per evaluation: step, dev (Spearman x100), learning_rate, and the mean of each loss term since
        the row before (none at step 0). best_step: the step whose weights the method now has; step 0 is scored but
        is no candidate, so that "trained" always means trained.
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
) -> FitResult:
    """Train `method` in place and leave it, in eval mode, with the weights of its best dev score.

    corpus: rows with `input_ids` (and `input_ids_b` where the second view is another text), as `tokenize_corpus` gives.
    dev: scores the method, higher is better; called before the first step and every `schedule.eval_every` steps.
    seed: decides batches, dropout and coins; the same seed on the same machine gives the same weights.
    checkpoints: a folder that outlives an interrupted run. Killed at any moment and called again, `fit` goes on from the
        last whole checkpoint (one at each evaluation) to the very same weights; the folder is removed at the end.

    Raises DataError when the corpus is smaller than a batch, and FloatingPointError when the loss is not finite.
    """
    if len(corpus) < schedule.batch_size:
        raise DataError(
            f"the corpus has {len(corpus)} sentences, fewer than one batch of {schedule.batch_size}; "
            "give more sentences or a smaller batch"
        )
    torch.manual_seed(seed)
    method.to(device).train()
    with _folder(checkpoints) as folder:
        resumed = last_whole(folder)
        history = read_history(resumed) if resumed else []
        arguments = _arguments(schedule, seed, torch.device(device), folder)
        arguments.eval_on_start = resumed is None
        arguments.save_only_model = checkpoints is None
        trainer = _ContrastiveTrainer(method, corpus, schedule, dev, arguments, history)
        trainer.remove_callback(PrinterCallback)
        trainer.add_callback(_Bar(name, schedule.steps))
        if checkpoints is not None:
            trainer.add_callback(MarkWhole(history))
        started = time.perf_counter()
        trainer.train(resume_from_checkpoint=resumed and str(resumed))
        seconds = time.perf_counter() - started
    method.eval()
    return FitResult(
        history=history,
        best_step=trainer.state.best_global_step,
        best_dev=trainer.state.best_metric,
        seconds=seconds,
        sentences_per_second=schedule.steps * schedule.batch_size / seconds,
    )


def _arguments(schedule: Schedule, seed: int, device: torch.device, folder: Path) -> TrainingArguments:
    return TrainingArguments(
        output_dir=str(folder),
        max_steps=schedule.steps,
        per_device_train_batch_size=schedule.batch_size,
        learning_rate=schedule.learning_rate,
        lr_scheduler_type=schedule.decay,
        weight_decay=schedule.weight_decay,
        max_grad_norm=schedule.max_grad_norm,
        bf16=schedule.bf16,
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
    )


@contextmanager
def _folder(checkpoints: str | Path | None) -> Iterator[Path]:
    """Where the Trainer writes: gone at the end, but where it is to outlive an interruption only if all went well."""
    if checkpoints is None:
        with tempfile.TemporaryDirectory(prefix="cselab-fit-") as folder:
            yield Path(folder)
    else:
        folder = Path(checkpoints)
        folder.mkdir(parents=True, exist_ok=True)
        yield folder
        shutil.rmtree(folder)


class _ContrastiveTrainer(Trainer):
    """Named loss terms, two-view length-bucketed batches, and a dev score in place of an evaluation set."""

    def __init__(
        self,
        method: Method,
        corpus: datasets.Dataset,
        schedule: Schedule,
        dev: Callable[[Method], float],
        arguments: TrainingArguments,
        history: list[dict[str, float | int]],
    ):
        self.dev = dev
        self.schedule = schedule
        self.history = history
        self._terms: dict[str, list[torch.Tensor]] = {}
        # The Trainer refuses to evaluate without an evaluation set; `evaluate` below never looks at it.
        super().__init__(model=method, args=arguments, train_dataset=corpus, eval_dataset=corpus)

    def get_train_dataloader(self) -> DataLoader:
        """Every sentence at most once an epoch, batches of like lengths, each batch as two views."""
        sampler = BucketedBatchSampler(self.train_dataset["length"], self.schedule.batch_size, seed=self.args.seed)
        loader = DataLoader(
            self.train_dataset,
            batch_sampler=sampler,
            collate_fn=TwoViewCollator(self.model.encoder.tokenizer),
            pin_memory=self.args.dataloader_pin_memory,
        )
        return self.accelerator.prepare(loader)

    def compute_loss(self, model, inputs, return_outputs=False, num_items_in_batch=None) -> torch.Tensor:
        step = self.state.global_step
        terms = model.losses(dict(inputs), StepContext.at(self.args.seed, step))
        total = sum(terms.values())
        if not torch.isfinite(total):
            values = ", ".join(f"{name} {value.item():g}" for name, value in terms.items())
            raise FloatingPointError(
                f"the loss is not finite at step {step} ({values}); try a lower learning rate or a higher temperature"
            )
        for name, value in terms.items():
            self._terms.setdefault(name, []).append(value.detach())
        return total

    def get_decay_parameter_names(self, model) -> list[str]:
        """All of them: the released code decays biases and LayerNorms too (METHODS 3)."""
        return [name for name, _ in model.named_parameters()]

    def evaluate(self, eval_dataset=None, ignore_keys=None, metric_key_prefix="eval") -> dict[str, float]:
        """The dev score; leaves the random state as it was, so that evaluating more often changes nothing."""
        with torch.random.fork_rng():
            self.model.eval()
            score = float(self.dev(self.model))
            self.model.train()
        means = {name: torch.stack(values).mean().item() for name, values in self._terms.items()}
        self._terms.clear()
        rate = self.lr_scheduler.get_last_lr()[0] if self.lr_scheduler else self.args.learning_rate
        self.history.append({"step": self.state.global_step, "dev": score, "learning_rate": rate, **means})
        self.control = self.callback_handler.on_evaluate(self.args, self.state, self.control, {"eval_dev": score})
        return {"eval_dev": score}


class _Bar(TrainerCallback):
    """A progress bar with the dev score and the time left."""

    def __init__(self, name: str, steps: int):
        self.bar = progress_bar(name, steps)

    def on_step_end(self, args, state, control, **kwargs):
        self.bar.update(state.global_step - self.bar.n)

    def on_evaluate(self, args, state, control, metrics, **kwargs):
        self.bar.set_postfix_str(f"dev {metrics['eval_dev']:.1f}", refresh=False)

    def on_train_end(self, args, state, control, **kwargs):
        self.bar.close()
