"""Training loop of pretraining: optimizer, schedule, curve, and checkpoints that resume exactly."""

import hashlib
import itertools
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from cselab.data.progress import progress_bar
from cselab.data.token_rows import Rows, batches
from cselab.errors import DataError, SettingsError
from cselab.methods.word_vectors import cooccurrence, ppmi_vectors
from cselab.models.folder import new_folder
from cselab.paths import replacing
from cselab.pretraining.tokenizer import train_tokenizer
from cselab.seals import is_whole, seal

CHECKPOINT_EVERY, SHOW_EVERY = 500, 20
"""Steps between checkpoints, and between updates of the progress bar's losses."""


def check_device(name: str) -> None:
    """Check the name of a device.

    Raises:
        SettingsError: For a device that torch does not know or that is not available.
    """
    try:
        kind = torch.device(name).type
    except RuntimeError:
        raise SettingsError(f"device {name!r}: expected cpu, cuda or cuda:1") from None
    if kind == "cuda" and not torch.cuda.is_available():
        raise SettingsError(f"device {name!r}: torch sees no such GPU here; use cpu")


def check_heads(heads: int, width: int) -> None:
    """Raise SettingsError unless attention heads divide the width."""
    if heads < 1 or width % heads:
        raise SettingsError(
            f"heads={heads} does not divide width={width}; expected a positive number that does"
        )


@dataclass(frozen=True)
class LoopConfig:
    """Settings of the model's shape and of the loop; defaults, except `steps`, as shipped."""

    steps: int = 400
    batch_size: int = 128
    """Sentences per step."""
    learning_rate: float = 1e-3
    """After a linear warm-up over a twentieth of the steps; then linear to 0."""
    layers: int = 6
    width: int = 192
    heads: int = 3
    inner: int = 384
    """Width of the feed-forward layers; with these values, 8,000 words fit into 8 MB."""
    vocab_size: int = 8000
    max_length: int = 48
    """Tokens per sentence."""
    max_positions: int = 128
    held_out: int = 2000
    """Sentences for the held-out loss."""
    evaluations: int = 20
    bf16: bool = False
    """Autocast to bfloat16, faster on a processor with bfloat16 matrix units."""
    device: str = "cpu"
    seed: int = 0

    def __post_init__(self):
        check_heads(self.heads, self.width)


class Run(ABC):
    """A training loop; subclasses define `losses` and `held_out_loss`.

    Args:
        config: Settings of the loop.
        tokenizer: The model's.
        rows: Tokens of the text.
        model: The model to train.
        checkpoint: A file from which the run resumes if it is there and whole, and which the run
            writes; None for neither.

    Raises:
        DataError: For less text than a batch and the held-out sentences.
        SettingsError: For a checkpoint of another run.
    """

    def __init__(
        self,
        config: LoopConfig,
        tokenizer: PreTrainedTokenizerBase,
        rows: Rows,
        model: PreTrainedModel,
        checkpoint: str | Path | None,
    ):
        if len(rows) < (least := config.batch_size + config.held_out):
            raise DataError(
                f"pretraining got {len(rows)} sentences; it needs at least {least} (a batch of "
                f"{config.batch_size} and {config.held_out} held out)"
            )
        self.config, self.rows, self.model, self.tokenizer = config, rows, model, tokenizer
        self.checkpoint = Path(checkpoint) if checkpoint else None
        self.device = torch.device(config.device)
        self.pad_id = tokenizer.pad_token_id
        self.special = torch.tensor(tokenizer.all_special_ids, device=self.device)
        self.held_out = held_out_positions(len(rows), config)
        self.train_rows = np.setdiff1d(np.arange(len(rows)), self.held_out)
        model.to(self.device)
        self.optimizer = torch.optim.AdamW(
            model.parameters(), lr=config.learning_rate, weight_decay=0.01, eps=1e-6, fused=True
        )
        warmup = max(1, config.steps // 20)
        decay = max(1, config.steps - warmup)
        self.schedule = torch.optim.lr_scheduler.LambdaLR(
            self.optimizer, lambda step: min((step + 1) / warmup, (config.steps - step) / decay)
        )
        self.step, self.tokens, self.seconds = 0, 0, 0.0
        self.curve: list[dict[str, float]] = []
        self.recent: dict[str, Tensor] = {}
        self.key = {**asdict(config), "text": hashlib.sha256(rows.flat.data).hexdigest()}
        if self.checkpoint and is_whole(self.checkpoint):
            self._resume()
        else:
            init_embeddings(model.get_input_embeddings(), rows, config)

    @abstractmethod
    def losses(self, which: np.ndarray) -> dict[str, Float[Tensor, ""]]:
        """Named losses on the sentences `which`; training minimises their sum."""

    def padded(self, which: np.ndarray) -> Int[Tensor, "B L"]:
        """Padded sentences `which` on the device; counts their tokens as seen."""
        ids = self.rows.padded(which, self.pad_id).to(self.device)
        self.tokens += int(self.rows.lengths[which].sum())
        return ids

    @abstractmethod
    def held_out_loss(self) -> float:
        """Loss in nats per token on `self.held_out`, deterministic for given weights."""

    def train_to(self, folder: str | Path) -> dict:
        """Train, and write model (float16) and tokenizer as a stock transformers folder.

        The checkpoint is removed after the folder is written.

        Args:
            folder: The new folder.

        Returns:
            The result of `train`.

        Raises:
            ModelError: Before the training, if `folder` holds something else.
        """
        with new_folder(folder) as target:
            report = self.train()
            self.model.cpu().half().save_pretrained(target)
            self.tokenizer.save_pretrained(target)
        if self.checkpoint:
            self.checkpoint.unlink(missing_ok=True)
        return report

    def train(self) -> dict:
        """Train to the last step.

        Returns:
            Config, sentences, `tokens_seen`, `curve` (step, held_out, running training losses) and
                `hours`, those before an interruption included.
        """
        config, began = self.config, time.perf_counter() - self.seconds
        bar = progress_bar("pretraining", config.steps)
        bar.update(self.step)
        drawn = batches(self.rows.lengths[self.train_rows], config.batch_size, seed=config.seed)
        for which in itertools.islice(drawn, self.step, config.steps):
            self.model.train()
            with torch.autocast(self.device.type, torch.bfloat16, enabled=config.bf16):
                losses = self.losses(self.train_rows[which])
            self.optimizer.zero_grad()
            sum(losses.values()).backward()
            nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
            self.optimizer.step()
            self.schedule.step()
            self.step += 1
            for name, loss in losses.items():
                before = self.recent.get(name, loss.detach())
                self.recent[name] = 0.98 * before + 0.02 * loss.detach()
            bar.update()
            if self.step % SHOW_EVERY == 0:  # not at each step: it waits for the GPU
                text = ", ".join(f"{name} {loss:.2f}" for name, loss in self.recent.items())
                bar.set_postfix_str(text, refresh=False)
            every = max(1, config.steps // config.evaluations)
            if self.step % every == 0 or self.step == config.steps:
                recent = {name: loss.item() for name, loss in self.recent.items()}
                self.curve.append({"step": self.step, "held_out": self.held_out_loss(), **recent})
            self.seconds = time.perf_counter() - began
            if self.checkpoint and self.step % CHECKPOINT_EVERY == 0:
                self._save(self.checkpoint)
        bar.close()
        return {
            "config": asdict(config),
            "sentences": len(self.rows),
            "tokens_seen": self.tokens,
            "curve": self.curve,
            "hours": round(self.seconds / 3600, 2),
        }

    def _parts(self) -> dict:
        return {"model": self.model, "optimizer": self.optimizer, "schedule": self.schedule}

    def _save(self, checkpoint: Path) -> None:
        on_gpu = self.device.type == "cuda"
        progress = ("step", "tokens", "seconds", "curve", "recent")
        saved = {
            "key": self.key,
            "parts": {name: part.state_dict() for name, part in self._parts().items()},
            "progress": {name: getattr(self, name) for name in progress},
            "random": torch.get_rng_state(),
            "random_cuda": torch.cuda.get_rng_state(self.device) if on_gpu else None,
        }
        with replacing(checkpoint) as work:
            torch.save(saved, work)
            seal(work)

    def _resume(self) -> None:
        saved = torch.load(self.checkpoint, weights_only=True, map_location="cpu")
        if saved["key"] != self.key:
            raise SettingsError(
                f"{self.checkpoint} is of a run on other text or settings; remove it to start anew"
            )
        for name, part in self._parts().items():
            part.load_state_dict(saved["parts"][name])
        for name, value in saved["progress"].items():
            setattr(self, name, value)
        torch.set_rng_state(saved["random"])
        if self.device.type == "cuda":
            torch.cuda.set_rng_state(saved["random_cuda"], self.device)


def train_tokenizer_and_tokenize(
    config: LoopConfig,
    sentences: Iterable[str],
    train: Callable[..., PreTrainedTokenizerBase] = train_tokenizer,
) -> tuple[PreTrainedTokenizerBase, Rows]:
    """Train a tokenizer on the sentences and tokenise them.

    Seeds torch, so that the weights that are drawn next depend on the seed.

    Args:
        config: Settings, of which the size of the vocabulary, the lengths and the seed are read.
        sentences: The text, read twice.
        train: A function of `cselab.pretraining.tokenizer`.
    """
    torch.manual_seed(config.seed)
    tokenizer = train(sentences, vocab_size=config.vocab_size, max_length=config.max_positions)
    return tokenizer, Rows.tokenize(sentences, tokenizer, max_length=config.max_length)


def held_out_positions(sentences: int, config: LoopConfig) -> np.ndarray:
    """Sorted positions of the held-out sentences.

    Args:
        sentences: Number of sentences in the text.
        config: Settings, of which the number of held-out sentences and the seed are read.
    """
    return np.sort(np.random.default_rng(config.seed).permutation(sentences)[: config.held_out])


@torch.no_grad()
def init_embeddings(embedding: nn.Embedding, rows: Rows, config: LoopConfig) -> None:
    """Initialise embeddings with PPMI word vectors plus noise of the same length, at BERT's scale.

    The standard deviation is 0.02; words without counts keep their random vectors. With noise only,
    the loss stays on its unigram plateau for ten million tokens; with word vectors it does not. But
    word vectors alone are very similar for words of one topic, so that sentences are distinguished
    worse than by their words; the noise keeps words apart.

    Args:
        embedding: The embedding, which is changed in place.
        rows: Tokens of the text.
        config: Settings, of which the width and the seed are read.
    """
    counts = cooccurrence(rows, embedding.num_embeddings)
    vectors = ppmi_vectors(counts, config.width, seed=config.seed)
    start = torch.as_tensor(vectors, dtype=embedding.weight.dtype, device=embedding.weight.device)
    known = start.norm(dim=1) > 1e-6
    start = F.normalize(start[known], dim=1) + F.normalize(embedding.weight[known], dim=1)
    embedding.weight[known] = 0.02 * start / start.std()
