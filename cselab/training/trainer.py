"""A `transformers.Trainer` with named loss terms, all processes' negatives and a dev score."""

import math
import multiprocessing
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import datasets
import torch
from accelerate.data_loader import DataLoaderShard
from safetensors.torch import load_file, save_file
from torch import Tensor, nn
from torch.utils.data import DataLoader
from transformers import Trainer, TrainerCallback, TrainerControl, TrainingArguments
from transformers.utils import SAFE_WEIGHTS_NAME

from cselab.data.batching import BucketedBatchSampler, ViewCollator
from cselab.errors import DivergenceError
from cselab.methods import Batch, Method, Outputs, Schedule, StepContext
from cselab.training.checkpoints import Best, trained_state
from cselab.training.distributed import from_first_process, gather_sentences, rank_and_world
from cselab.training.large_batch import cached_backward
from cselab.training.watch import Probe, Watch, forked_random_state, save_batch

WORKERS = {"cuda": 2} if "fork" in multiprocessing.get_all_start_methods() else {}
"""Processes that collate batches ahead of a device, by its type; a CPU's cores are at work."""


class AfterStep(TrainerCallback):
    """Call a function after each step of the optimiser, before evaluation and saving."""

    def __init__(self, function: Callable[[], None]):
        self.function = function

    def on_step_end(self, args, state, control, **kwargs) -> None:
        self.function()


class ContrastiveTrainer(Trainer):
    """Trainer of a `Method`; each evaluation appends a row to `history`.

    The batch of a step whose loss is not finite is written to `logs`.
    """

    def __init__(
        self,
        method: Method,
        corpus: datasets.Dataset,
        schedule: Schedule,
        dev: Callable[[Method], float],
        arguments: TrainingArguments,
        history: list[dict[str, float | int]],
        best: Best,
        probe: Probe,
        watch: Watch,
        logs: Path | None = None,
    ):
        self.schedule, self.dev, self.history, self.logs = schedule, dev, history, logs
        self.best, self.probe, self.watch = best, probe, watch
        self._terms: dict[str, list[Tensor]] = {}
        self._last: tuple[int, Batch, dict[str, Tensor]] | None = None
        self._outputs: Outputs | None = None
        self._compiled: Callable | None = None
        # The Trainer refuses to evaluate without an evaluation set; `evaluate` below ignores it.
        super().__init__(model=method, args=arguments, train_dataset=corpus, eval_dataset=corpus)
        self.add_callback(AfterStep(lambda: method.after_step(self._outputs)))

    def get_train_dataloader(self) -> DataLoader:
        """Batches of this process; each sentence occurs at most once per epoch."""
        sampler = BucketedBatchSampler(
            self.train_dataset["length"],
            self.schedule.batch_size,
            seed=self.args.seed,
            part=rank_and_world(),
            by_length=self.schedule.by_length,
        )
        # a daemon, as dask's workers are, may start no process
        daemon = multiprocessing.current_process().daemon
        workers = 0 if daemon else WORKERS.get(self.args.device.type, 0)
        return DataLoaderShard(
            self.train_dataset,
            device=self.args.device,
            batch_sampler=sampler,
            collate_fn=ViewCollator(self.model.encoder.tokenizer, views=self.model.views),
            pin_memory=self.args.dataloader_pin_memory,
            # forked: a process that is spawned would run a script's first lines again; not kept for
            # the next epoch, whose start draws a random number that dropout would miss
            num_workers=workers,
            multiprocessing_context="fork" if workers else None,
        )

    def training_step(self, model: nn.Module, inputs: Batch, num_items_in_batch=None) -> Tensor:
        """Forward and backward pass of this process's sentences, with all processes' negatives."""
        self._check_last_step()
        model.train()
        batch = dict(self._prepare_inputs(inputs))
        ids = batch.pop("text_hash", None)
        masked = ids is not None and self.schedule.mask_duplicates
        ids = gather_sentences(ids, axis=0) if masked else None
        world = rank_and_world()[1]
        terms: dict[str, Tensor] = {}

        def loss_of(outputs: Outputs) -> Tensor:
            outputs = outputs.map(lambda part: gather_sentences(part, axis=1))
            step = StepContext.at(self.args.seed, self.state.global_step, ids)
            terms.update(self.model.compare(outputs, step))
            self._outputs = outputs.map(Tensor.detach)
            return world * sum(terms.values())  # DDP takes the mean of the processes' gradients

        forward = self._forward(model)
        if self.schedule.chunk:
            options = {"chunk": self.schedule.chunk, "views": self.model.views}
            if world > 1:
                options["unsynced"] = model.no_sync
            loss = cached_backward(forward, loss_of, batch, **options)
        else:
            loss = loss_of(forward(batch))
            loss.backward()
        for name, value in terms.items():
            self._terms.setdefault(name, []).append(value.detach())
        values = {name: value.detach() for name, value in terms.items()}
        self._last = (self.state.global_step, batch, values)
        return loss.detach() / world

    def _forward(self, model: nn.Module) -> Callable[[Batch], Outputs]:
        """The forward pass of the Trainer's wrapped model, in the schedule's precision."""
        if self._compiled is None:
            self._compiled = torch.compile(model, dynamic=True) if self.schedule.compile else model
        compiled = self._compiled

        def forward(batch: Batch) -> Outputs:
            with torch.autocast(self.args.device.type, torch.bfloat16, enabled=self.schedule.bf16):
                return compiled(batch)

        return forward

    def last_step(self) -> tuple[int, dict[str, float]]:
        """The number of the last step and its loss terms."""
        assert self._last is not None  # it is called after a step
        _, _, terms = self._last
        return self.state.global_step, {name: value.item() for name, value in terms.items()}

    def _check_last_step(self) -> None:
        """Raise DivergenceError if the last loss was not finite.

        One step late, so that a GPU does not wait for the check.
        """
        if self._last is None:
            return
        (step, batch, terms), self._last = self._last, None
        if all(math.isfinite(value) for value in torch.stack(list(terms.values())).tolist()):
            return
        values = ", ".join(f"{name} {value.item():g}" for name, value in terms.items())
        note = ""
        if self.logs:
            with suppress(OSError):
                path = save_batch(self.logs, step, batch, self.model.encoder.tokenizer, terms)
                note = f"; its sentences are in {path}"
        raise DivergenceError(
            f"the loss is not finite at step {step} ({values}){note}; try a lower learning rate, "
            "clipping (max_grad_norm=1) or a higher temperature"
        )

    def _save(self, output_dir: str | None = None, state_dict: dict | None = None) -> None:
        """Write what the optimiser changes; frozen weights are those of the start."""
        folder = Path(output_dir or self.args.output_dir)
        folder.mkdir(parents=True, exist_ok=True)
        save_file(trained_state(self.model), folder / SAFE_WEIGHTS_NAME)

    def _load_from_checkpoint(self, resume_from_checkpoint: str, model: Any = None) -> None:
        weights = load_file(Path(resume_from_checkpoint) / SAFE_WEIGHTS_NAME)
        self.model.load_state_dict(weights, strict=False)

    def get_decay_parameter_names(self, model) -> list[str]:
        """All parameters: the released code decays biases and LayerNorms too."""
        return [name for name, _ in model.named_parameters()]

    def evaluate(
        self, eval_dataset=None, ignore_keys=None, metric_key_prefix="eval"
    ) -> dict[str, float]:
        """Append a row with the first process's dev score to the history; draws nothing."""
        self._check_last_step()
        with forked_random_state(self.args.device):
            geometry = self.probe.measure(self.model)
            self.model.eval()
            score = from_first_process(float(self.dev(self.model)))
            self.model.train()
        means = {name: torch.stack(values).mean().item() for name, values in self._terms.items()}
        self._terms.clear()
        rate = self.lr_scheduler.get_last_lr()[0] if self.lr_scheduler else self.args.learning_rate
        row = {
            "step": self.state.global_step,
            "dev": score,
            "learning_rate": rate,
            **geometry,
            **means,
        }
        self.history.append(row)
        self.best.update(self.state.global_step, score, self.model)
        self.watch.mark(row)
        self.control: TrainerControl = self.callback_handler.on_evaluate(
            self.args, self.state, self.control, {"eval_dev": score}
        )
        return {"eval_dev": score}
