"""A `transformers.Trainer` for pretraining: a curve, and exact resume after a kill."""

import itertools
import json
import time
from collections.abc import Callable, Iterator, MutableMapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import DataLoader
from transformers import PreTrainedModel, Trainer, TrainerControl, TrainingArguments

from cselab.errors import SettingsError
from cselab.paths import replacing
from cselab.training.checkpoints import MarkComplete, last_complete, read_history


@dataclass(frozen=True)
class TrainingConfig:
    """Settings of a training."""

    steps: int = 400
    batch_size: int = 128
    learning_rate: float = 1e-3
    """After a linear warm-up over a twentieth of the steps; then linear to 0."""
    evaluations: int = 20
    """Rows of the curve; each has a checkpoint."""
    bf16: bool = False
    """Autocast to bfloat16, faster on a processor with bfloat16 matrix units."""
    device: str = "cpu"
    seed: int = 0


@dataclass(frozen=True)
class ModelConfig(TrainingConfig):
    """Settings of a training from scratch, and the width of its model."""

    width: int = 192
    heads: int = 3
    inner: int = 384
    """Width of the feed-forward layers."""

    def __post_init__(self):
        if self.heads < 1 or self.width % self.heads:
            raise SettingsError(f"heads={self.heads} does not divide width={self.width}")


def check_device(name: str) -> None:
    """Raise SettingsError for another device than "cpu" and, with a GPU, "cuda"."""
    if name not in ("cpu", "cuda"):
        raise SettingsError(f"device {name!r}: expected cpu, cuda (CUDA_VISIBLE_DEVICES: which)")
    if name == "cuda" and not torch.cuda.is_available():
        raise SettingsError(f"device {name!r}: torch sees no such GPU here; use cpu")


def batches(lengths: np.ndarray, batch_size: int, *, seed: int) -> Iterator[np.ndarray]:
    """Endless batches of row numbers of similar length; each epoch is a new shuffle of all rows."""
    for epoch in itertools.count():
        random = np.random.default_rng((seed, epoch))
        order = random.permutation(len(lengths))[: len(lengths) // batch_size * batch_size]
        order = order[np.argsort(lengths[order] + random.uniform(-2, 2, len(order)), kind="stable")]
        yield from random.permutation(order.reshape(-1, batch_size))


class CurveTrainer(Trainer):
    """Trainer whose evaluations are rows of a curve, each with a checkpoint.

    A subclass may define other `losses`, and what an evaluation measures.

    Args:
        lengths: Tokens of each of the training examples `rows`, (n,); a batch has similar lengths.
        text: Fingerprint of the text; checkpoints of another text are refused.
        checkpoints: Folder of checkpoints; a training that was killed continues from its last one.
        **options: Further arguments of `TrainingArguments`.

    Raises:
        SettingsError: For checkpoints of a training on other text or settings.
    """

    def __init__(
        self,
        model: PreTrainedModel,
        config: TrainingConfig,
        rows: Any,
        lengths: np.ndarray,
        collate: Callable[[list], MutableMapping[str, Tensor]],
        *,
        text: str,
        checkpoints: Path,
        **options: Any,
    ):
        settings, path = {**asdict(config), "text": text}, checkpoints / "settings.json"
        if path.is_file() and json.loads(path.read_text()) != settings:
            raise SettingsError(
                f"{checkpoints} is of a run on other text or settings; remove it to start anew"
            )
        checkpoints.mkdir(parents=True, exist_ok=True)
        with replacing(path) as work:
            work.write_text(json.dumps(settings))
        self.config, self.lengths = config, lengths
        self.resumed, damaged = last_complete(checkpoints, before=config.steps)
        for line in damaged:
            print(line)
        self.curve = read_history(self.resumed) if self.resumed else []
        self._losses: dict[str, list[Tensor]] = {}
        with torch.random.fork_rng(devices=[]):  # the Trainer seeds torch anew
            super().__init__(
                model=model,
                args=_arguments(config, checkpoints, options),
                train_dataset=rows,
                eval_dataset=rows,  # the Trainer asks for one; `evaluate` below ignores it
                data_collator=collate,
            )
        self.add_callback(MarkComplete(self.curve))

    def run(self) -> float:
        """Train to the last step; return seconds, those before an interruption included."""
        before = self.curve[-1]["seconds"] if self.curve else 0.0
        self._began = time.perf_counter() - before
        self.train(resume_from_checkpoint=self.resumed and str(self.resumed))
        return self.curve[-1]["seconds"]

    def losses(self, batch: MutableMapping[str, Tensor]) -> dict[str, Tensor]:
        """Named losses of a batch; training minimises their sum."""
        return {"loss": super().compute_loss(self.model, batch)}

    def measured(self) -> dict[str, float]:
        """Numbers of a row of the curve, besides the training losses."""
        return {}

    def get_train_dataloader(self) -> DataLoader:
        """All batches of the training, which depend on the seed only."""
        chosen = batches(self.lengths, self.config.batch_size, seed=self.config.seed)
        return DataLoader(
            self.train_dataset,
            batch_sampler=list(itertools.islice(chosen, self.config.steps)),
            collate_fn=self.data_collator,
            generator=torch.Generator(),  # else it draws from torch's global one
        )

    def get_decay_parameter_names(self, model) -> list[str]:
        """All parameters, as in the training of the shipped backbones."""
        return [name for name, _ in model.named_parameters()]

    def compute_loss(self, model, inputs, return_outputs=False, num_items_in_batch=None) -> Tensor:
        """Sum of `losses`."""
        with self.accelerator.autocast():  # the Trainer's is around the model's `forward` alone
            losses = self.losses(inputs)
        for name, loss in losses.items():
            self._losses.setdefault(name, []).append(loss.detach())
        return sum(losses.values())

    def evaluate(self, *_, **__) -> dict[str, float]:
        """Append a row to the curve, with the means of the losses since the row before."""
        means = {name: torch.stack(values).mean().item() for name, values in self._losses.items()}
        self._losses.clear()
        seconds = time.perf_counter() - self._began
        row = {"step": self.state.global_step, **self.measured(), **means, "seconds": seconds}
        self.curve.append(row)
        self.log(row)
        self.control: TrainerControl = self.callback_handler.on_evaluate(
            self.args, self.state, self.control, row
        )
        return {}


def _arguments(config: TrainingConfig, checkpoints: Path, options: dict) -> TrainingArguments:
    every = max(1, config.steps // config.evaluations)
    arguments = TrainingArguments(
        output_dir=str(checkpoints),
        max_steps=config.steps,
        per_device_train_batch_size=config.batch_size,
        learning_rate=config.learning_rate,
        warmup_steps=max(1, config.steps // 20),
        weight_decay=0.01,
        bf16=config.bf16,
        use_cpu=config.device == "cpu",
        seed=config.seed,
        eval_strategy="steps",
        eval_steps=every,
        save_strategy="steps",
        save_steps=every,
        save_total_limit=2,  # the previous one is kept while the last is being written
        logging_strategy="no",
        report_to="none",
        remove_unused_columns=False,
        use_cache=True,  # the Trainer would write its own choice into the model's configuration
        **options,
    )
    arguments._n_gpu = min(arguments.n_gpu, 1)
    return arguments
