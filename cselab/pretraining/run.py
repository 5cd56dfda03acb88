"""One pretraining run: optimizer, schedule, curve, and checkpoints from which an interrupted run ends where it would have."""

import hashlib
import itertools
import os
from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from cselab.errors import DataError, SettingsError
from cselab.models.folder import new_folder
from cselab.pretraining.text import Rows, batches
from cselab.pretraining.tokenizer import train_tokenizer
from cselab.pretraining.word_vectors import cooccurrence, ppmi_vectors
from cselab.progress import progress_bar

CHECKPOINT_EVERY = 500  # steps
SHOWN_EVERY = 20


def check_device(name: str) -> None:
    """Raises SettingsError for a device that torch does not know or does not see here."""
    try:
        kind = torch.device(name).type
    except RuntimeError:
        raise SettingsError(f"device {name!r}: expected cpu, cuda or cuda:1") from None
    if kind == "cuda" and not torch.cuda.is_available():
        raise SettingsError(f"device {name!r}: torch sees no such GPU here; use cpu")


@dataclass(frozen=True)
class RunConfig:
    """Shape and length of a run, whatever it learns from. The defaults are those of the shipped backbones but `steps`."""

    steps: int = 400
    batch_size: int = 128  # sentences
    learning_rate: float = 1e-3  # after a linear warm-up over a twentieth of the steps; then linear to 0
    layers: int = 6
    width: int = 192
    heads: int = 3
    inner: int = 384  # of the feed-forward layers: with 6 of them, 8,000 words fit into 8 MB at this width
    vocab_size: int = 8000
    max_length: int = 48  # tokens of a sentence
    max_positions: int = 128
    held_out: int = 2000  # sentences kept for the held-out loss
    evaluations: int = 20
    bf16: bool = False  # autocast; worth it where the processor has bfloat16 matrix units
    device: str = "cpu"
    seed: int = 0


class Run(ABC):
    """What a model learns from is `losses` and `held_out_loss`; the rest is here.

    model: what is trained and kept.
    checkpoint: a file that is read if it is there and written as the run goes; None for neither.

    Raises DataError for less text than a batch and the held-out sentences, SettingsError for a checkpoint of another run.
    """

    def __init__(
        self, config: RunConfig, tokenizer: PreTrainedTokenizerBase, rows: Rows, model: PreTrainedModel,
        checkpoint: str | Path | None,
    ):  # fmt: skip
        if len(rows) < (least := config.batch_size + config.held_out):
            raise DataError(
                f"pretraining got {len(rows)} sentences; it needs at least {least} "
                f"(a batch of {config.batch_size} and {config.held_out} held out)"
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
        self.schedule = torch.optim.lr_scheduler.LambdaLR(
            self.optimizer, lambda step: min((step + 1) / warmup, (config.steps - step) / max(1, config.steps - warmup))
        )
        self.step, self.tokens, self.curve, self.recent = 0, 0, [], {}
        self.key = {**asdict(config), "text": hashlib.sha256(rows.flat).hexdigest()}
        if self.checkpoint and self.checkpoint.is_file():
            self._resume()
        else:
            start_embeddings(model.get_input_embeddings(), rows, config)

    @abstractmethod
    def losses(self, which: np.ndarray) -> dict[str, Float[Tensor, ""]]:
        """Named losses on the sentences `which`. Training minimises the sum."""

    def padded(self, which: np.ndarray) -> Int[Tensor, "B L"]:
        """The sentences `which` on the run's device; their tokens are counted as seen."""
        ids = self.rows.padded(which, self.pad_id).to(self.device)
        self.tokens += int(self.rows.lengths[which].sum())
        return ids

    @abstractmethod
    def held_out_loss(self) -> float:
        """In nats a token, on `self.held_out`; the same at every call for the same weights."""

    def into(self, folder: str | Path) -> dict:
        """Train, and write model (float16) and tokenizer as a stock transformers folder; returns what `train` does."""
        report = self.train()
        with new_folder(folder) as target:
            self.model.cpu().half().save_pretrained(target)
            self.tokenizer.save_pretrained(target)
        return report

    def train(self) -> dict:
        """Go on to the last step; returns `tokens_seen` and `curve` (step, held_out, running training losses)."""
        config = self.config
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
                self.recent[name] = 0.98 * self.recent.get(name, loss.detach()) + 0.02 * loss.detach()
            bar.update()
            if self.step % SHOWN_EVERY == 0:  # a GPU would have to be waited for
                bar.set_postfix_str(", ".join(f"{k} {v:.2f}" for k, v in self.recent.items()), refresh=False)
            if self.step % max(1, config.steps // config.evaluations) == 0 or self.step == config.steps:
                recent = {name: loss.item() for name, loss in self.recent.items()}
                self.curve.append({"step": self.step, "held_out": self.held_out_loss(), **recent})
            if self.checkpoint and self.step % CHECKPOINT_EVERY == 0:
                self._save()
        bar.close()
        if self.checkpoint:
            self.checkpoint.unlink(missing_ok=True)
        return {"config": asdict(config), "sentences": len(self.rows), "tokens_seen": self.tokens, "curve": self.curve}

    def _parts(self) -> dict:
        return {"model": self.model, "optimizer": self.optimizer, "schedule": self.schedule}

    def _save(self) -> None:
        saved = {
            "key": self.key,
            "parts": {name: part.state_dict() for name, part in self._parts().items()},
            "progress": {name: getattr(self, name) for name in ("step", "tokens", "curve", "recent")},
            "random": torch.get_rng_state(),
            "random_cuda": torch.cuda.get_rng_state(self.device) if self.device.type == "cuda" else None,
        }
        temporary = self.checkpoint.with_suffix(".tmp")
        torch.save(saved, temporary)
        os.replace(temporary, self.checkpoint)

    def _resume(self) -> None:
        saved = torch.load(self.checkpoint, weights_only=True, map_location="cpu")
        if saved["key"] != self.key:
            raise SettingsError(f"{self.checkpoint} is of a run on other text or settings; remove it to start anew")
        for name, part in self._parts().items():
            part.load_state_dict(saved["parts"][name])
        for name, value in saved["progress"].items():
            setattr(self, name, value)
        torch.set_rng_state(saved["random"])
        if self.device.type == "cuda":
            torch.cuda.set_rng_state(saved["random_cuda"], self.device)


def read(config: RunConfig, sentences: Iterable[str]) -> tuple[PreTrainedTokenizerBase, Rows]:
    """A tokenizer trained on the sentences, and their tokens; seeds torch, so that the model drawn next is the seed's."""
    torch.manual_seed(config.seed)
    tokenizer = train_tokenizer(sentences, vocab_size=config.vocab_size, max_length=config.max_positions)
    return tokenizer, Rows.tokenize(sentences, tokenizer, max_length=config.max_length)


def held_out_positions(sentences: int, config: RunConfig) -> np.ndarray:
    """Which of so many sentences are kept from training, sorted."""
    return np.sort(np.random.default_rng(config.seed).permutation(sentences)[: config.held_out])


@torch.no_grad()
def start_embeddings(embedding: nn.Embedding, rows: Rows, config: RunConfig) -> None:
    """Start at BERT's scale (0.02) from PPMI word vectors plus as much noise; rows without counts keep their random start.

    From noise alone the loss sits on its unigram plateau for ten million tokens; from counts it leaves it at once. But
    vectors of counts alone are so alike for words of one topic that sentences are told apart worse than by which words
    they hold; the noise keeps words apart.
    """
    vectors = ppmi_vectors(cooccurrence(rows, embedding.num_embeddings), config.width, seed=config.seed)
    start = torch.as_tensor(vectors, dtype=embedding.weight.dtype, device=embedding.weight.device)
    known = start.norm(dim=1) > 1e-6
    start = F.normalize(start[known], dim=1) + F.normalize(embedding.weight[known], dim=1)
    embedding.weight[known] = 0.02 * start / start.std()
