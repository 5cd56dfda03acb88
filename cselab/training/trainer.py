"""The `transformers.Trainer` of contrastive methods: named terms, negatives of all processes, cached gradients, a dev score."""

import math
from collections.abc import Callable
from pathlib import Path

import datasets
import torch
from accelerate.data_loader import DataLoaderShard
from torch import Tensor, nn
from torch.utils.data import DataLoader
from transformers import Trainer, TrainerCallback, TrainingArguments

from cselab.data.batching import BucketedBatchSampler, ViewCollator
from cselab.errors import DivergenceError
from cselab.methods import Batch, Method, StepContext, Vectors
from cselab.settings import Schedule
from cselab.training.distributed import from_first, gather_sentences, rank_and_world
from cselab.training.large_batch import cached_backward
from cselab.training.watch import Probe, Watch, keep_batch


class Advance(TrainerCallback):
    """Lets the method take its step after the optimiser's, before anything is evaluated or saved."""

    def __init__(self, take: Callable[[], None]):
        self.take = take

    def on_step_end(self, args, state, control, **kwargs) -> None:
        self.take()


class ContrastiveTrainer(Trainer):
    """history: the rows of `FitResult`, appended to at each evaluation. logs: where the batch of a bad step goes."""

    def __init__(
        self,
        method: Method,
        corpus: datasets.Dataset,
        schedule: Schedule,
        dev: Callable[[Method], float],
        arguments: TrainingArguments,
        history: list[dict[str, float | int]],
        probe: Probe,
        watch: Watch,
        logs: Path | None = None,
    ):
        self.schedule, self.dev, self.history, self.logs = schedule, dev, history, logs
        self.probe, self.watch = probe, watch
        self._terms: dict[str, list[Tensor]] = {}
        self._last: tuple[int, Batch, dict[str, Tensor]] | None = None
        self._vectors: Vectors = {}
        self._compiled: Callable | None = None
        # The Trainer refuses to evaluate without an evaluation set; `evaluate` below never looks at it.
        super().__init__(model=method, args=arguments, train_dataset=corpus, eval_dataset=corpus)
        self.add_callback(Advance(lambda: method.advance(self._vectors)))

    def get_train_dataloader(self) -> DataLoader:
        """Every sentence at most once an epoch, batches of like lengths, each batch as two views; a process gets its part."""
        sampler = BucketedBatchSampler(
            self.train_dataset["length"], self.schedule.batch_size, seed=self.args.seed, part=rank_and_world()
        )
        return DataLoaderShard(
            self.train_dataset,
            device=self.args.device,
            batch_sampler=sampler,
            collate_fn=ViewCollator(self.model.encoder.tokenizer, views=self.model.views),
            pin_memory=self.args.dataloader_pin_memory,
        )

    def training_step(self, model: nn.Module, inputs: Batch, num_items_in_batch=None) -> Tensor:
        """Forward and backward of this process's sentences against everybody's."""
        self._check_last_step()
        model.train()
        batch = dict(self._prepare_inputs(inputs))
        ids = batch.pop("text_hash", None)
        ids = None if ids is None else gather_sentences(ids, axis=0)
        world = rank_and_world()[1]
        terms: dict[str, Tensor] = {}

        def loss_of(vectors: Vectors) -> Tensor:
            whole = {name: gather_sentences(part, axis=1) for name, part in vectors.items()}
            step = StepContext.at(self.args.seed, self.state.global_step)
            terms.update(self.model.compare(whole, step, ids))
            self._vectors = {name: part.detach() for name, part in whole.items()}
            return world * sum(terms.values())  # DDP takes the mean of the processes' gradients

        forward = self._forward(model)
        if self.schedule.chunk:
            options = {"chunk": self.schedule.chunk, "views": self.model.views}
            loss = cached_backward(
                forward, loss_of, batch, **options, **({"unsynced": model.no_sync} if world > 1 else {})
            )
        else:
            loss = loss_of(forward(batch))
            loss.backward()
        for name, value in terms.items():
            self._terms.setdefault(name, []).append(value.detach())
        self._last = (self.state.global_step, batch, {name: value.detach() for name, value in terms.items()})
        return loss.detach() / world

    def _forward(self, model: nn.Module) -> Callable[[Batch], Vectors]:
        """The method as the Trainer wrapped it, in the schedule's precision, compiled if the schedule says so."""
        if self._compiled is None:
            self._compiled = torch.compile(model, dynamic=True) if self.schedule.compile else model

        def forward(batch: Batch) -> Vectors:
            with torch.autocast(self.args.device.type, torch.bfloat16, enabled=self.schedule.bf16):
                return self._compiled(batch)

        return forward

    def _check_last_step(self) -> None:
        """One step late, so that a GPU never has to wait for the answer."""
        if self._last is None:
            return
        (step, batch, terms), self._last = self._last, None
        if all(math.isfinite(value) for value in torch.stack(list(terms.values())).tolist()):
            return
        values = ", ".join(f"{name} {value.item():g}" for name, value in terms.items())
        kept = ""
        if self.logs:
            kept = f"; its sentences are in {keep_batch(self.logs, step, batch, self.model.encoder.tokenizer, terms)}"
        raise DivergenceError(
            f"the loss is not finite at step {step} ({values}){kept}; "
            "try a lower learning rate, clipping (max_grad_norm=1) or a higher temperature"
        )

    def get_decay_parameter_names(self, model) -> list[str]:
        """All of them: the released code decays biases and LayerNorms too (METHODS 3)."""
        return [name for name, _ in model.named_parameters()]

    def evaluate(self, eval_dataset=None, ignore_keys=None, metric_key_prefix="eval") -> dict[str, float]:
        """The dev score, the first process's; leaves the random state as it was, so that looking more often changes nothing."""
        self._check_last_step()
        with torch.random.fork_rng():
            geometry = self.probe.look(self.model)
            self.model.eval()
            score = from_first(float(self.dev(self.model)))
            self.model.train()
        means = {name: torch.stack(values).mean().item() for name, values in self._terms.items()}
        self._terms.clear()
        rate = self.lr_scheduler.get_last_lr()[0] if self.lr_scheduler else self.args.learning_rate
        row = {"step": self.state.global_step, "dev": score, "learning_rate": rate, **geometry, **means}
        self.history.append(row)
        self.watch.mark(row)
        self.control = self.callback_handler.on_evaluate(self.args, self.state, self.control, {"eval_dev": score})
        return {"eval_dev": score}
