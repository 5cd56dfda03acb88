"""Monitoring of a training: geometry of a fixed probe batch, collapse, speed, TensorBoard files."""

import json
import sys
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Protocol, runtime_checkable

import datasets
import torch
from torch import Tensor
from transformers import TrainerCallback

from cselab.data.batching import ViewCollator
from cselab.data.progress_bar import progress_bar
from cselab.errors import DivergenceError
from cselab.evaluation.geometry import alignment, uniformity
from cselab.methods import Batch, Method

PROBE_SENTENCES = 64
COLLAPSED = -0.05
"""Uniformity above which embeddings count as collapsed (0: one point; trained: -4 to -2), unless
they started near it: a random encoder's may be -0.1. Then three quarters of it have to be lost."""


def forked_random_state(device: torch.device) -> AbstractContextManager[None]:
    """A context after which the random states of the processor and of `device` are as before it."""
    devices = [] if device.type == "cpu" else [device]
    return torch.random.fork_rng(devices=devices, device_type=device.type)


class Probe:
    """A fixed batch of sentences, on which alignment and uniformity are measured."""

    def __init__(self, method: Method, corpus: datasets.Dataset, device: torch.device):
        step = max(1, len(corpus) // PROBE_SENTENCES)
        rows = list(corpus.select(range(0, len(corpus), step)[:PROBE_SENTENCES]))
        batch = ViewCollator(method.encoder.tokenizer)(rows)
        self.batch = {name: batch[name].to(device) for name in ("input_ids", "attention_mask")}
        self.start: float | None = None

    @torch.no_grad()
    def measure(self, method: Method) -> dict[str, float]:
        """Alignment of two dropout views, and uniformity of the first; keeps the random state.

        Raises:
            DivergenceError: If the embeddings have collapsed since the first measurement.
        """
        device = self.batch["input_ids"].device
        with forked_random_state(device):
            torch.manual_seed(0)
            method.train()
            first, second = method.embed(self.batch).chunk(2)
        now = uniformity(first).item()
        self.start = now if self.start is None else self.start
        if method.keeps_apart and now > max(COLLAPSED, self.start / 4):
            raise DivergenceError(
                f"the embeddings collapsed: uniformity of the probe went from {self.start:.2f} to "
                f"{now:.2f}; keep a term with negatives ('nce'), or lower the learning rate"
            )
        return {"alignment": alignment(first, second).item(), "uniformity": now}


@runtime_checkable
class Listener(Protocol):
    """A follower of a training as it runs, such as a live figure."""

    def started(self, name: str, steps: int) -> None:
        """Called before the first step, with the number of steps; also when a training resumes."""

    def step(self, name: str, number: int, terms: Mapping[str, float]) -> None:
        """Called after each step, with the values of the loss terms."""

    def evaluated(self, name: str, row: Mapping[str, float | int]) -> None:
        """Called after each evaluation, with its row of the history."""


class Watch(TrainerCallback):
    """A progress bar with dev score, loss terms and speed, and the same in TensorBoard files.

    Files that cannot be written end no training: a line says why, and there are none. `seconds` is
    the time of the `steps` training steps of this process, without evaluations.
    """

    def __init__(
        self,
        name: str,
        steps: int,
        batch_size: int,
        logs: Path | None,
        listener: Listener | None = None,
    ):
        self.bar = progress_bar(name, steps)
        self.name, self.batch_size, self.listener = name, batch_size, listener
        self.seconds, self.steps, self._began = 0.0, 0, 0.0
        self.writer = None
        if logs is not None:
            from torch.utils.tensorboard import SummaryWriter

            with self._writing():
                self.writer = SummaryWriter(str(logs))

    @contextmanager
    def _writing(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            print(f"{self.name}: no TensorBoard files ({error})", file=sys.stderr)
            self.writer = None

    @property
    def sentences_per_second(self) -> float:
        """Speed of the training steps, without evaluations."""
        return self.steps * self.batch_size / self.seconds if self.seconds else 0.0

    def on_step_begin(self, args, state, control, **kwargs):
        self._began = time.perf_counter()

    def on_step_end(self, args, state, control, **kwargs):
        self.seconds += time.perf_counter() - self._began
        self.steps += 1
        self.bar.update(state.global_step - self.bar.n)

    def tell(self, rows: Iterable[Mapping[str, float | int]]) -> None:
        """Give rows of the history to the listener."""
        if self.listener:
            for row in rows:
                self.listener.evaluated(self.name, row)

    def mark(self, row: Mapping[str, float | int]) -> None:
        """Show an evaluation, a row of the history."""
        self.tell([row])
        speed = {"sentences_per_second": self.sentences_per_second}
        hidden = ("step", "learning_rate", "alignment")
        text = ", ".join(f"{name} {x:.3g}" for name, x in row.items() if name not in hidden)
        if self.steps:
            text += f", {self.sentences_per_second:.0f} sentences/s"
        self.bar.set_postfix_str(text, refresh=False)
        if self.writer:
            with self._writing():
                for name, value in {**row, **speed}.items():
                    self.writer.add_scalar(name, value, row["step"])

    def on_train_end(self, args, state, control, **kwargs):
        self.close()

    def close(self) -> None:
        """Close the bar and the TensorBoard files."""
        self.bar.close()
        if self.writer:
            with self._writing():
                self.writer.close()


def save_batch(
    folder: Path, step: int, batch: Batch, tokenizer, terms: Mapping[str, Tensor]
) -> Path:
    """Write the sentences and terms of a step to a readable file."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"diverged-at-step-{step}.json"
    sentences = tokenizer.batch_decode(batch["input_ids"], skip_special_tokens=True)
    values = {name: value.item() for name, value in terms.items()}
    report = {"step": step, "terms": values, "sentences": sentences}
    path.write_text(json.dumps(report, indent=1, ensure_ascii=False), encoding="utf-8")
    return path
