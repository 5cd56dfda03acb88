"""Pretraining a small BERT on plain sentences: one run, its schedule, its checkpoints.

Masked LM alone teaches [CLS] nothing, and contrastive training starts from what [CLS] knows; so each sentence must also be
rebuilt from its [CLS] state (RetroMAE). Where the text keeps its order, the pooler learns BERT's next-sentence task.
"""

import hashlib
import itertools
import os
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import torch
from torch import nn
from transformers import BertConfig, BertForPreTraining, PreTrainedTokenizerBase

from cselab.errors import DataError, SettingsError
from cselab.models.folder import new_folder
from cselab.pretraining.objectives import Bottleneck, chosen, pair_losses, sentence_losses, token_loss
from cselab.pretraining.text import Rows, batches, neighbours
from cselab.pretraining.tokenizer import train_tokenizer
from cselab.pretraining.word_vectors import cooccurrence, ppmi_vectors
from cselab.training.progress import progress_bar

CHECKPOINT_EVERY = 500  # steps
FINE_TUNING_DROPOUT = 0.1  # BERT's, written into the saved config: contrastive training makes its views with it


@dataclass(frozen=True)
class PretrainConfig:
    """Shape, length and objectives of one pretraining run. The defaults are those of the shipped tiny BERT but `steps`."""

    steps: int = 400
    batch_size: int = 128  # sentences
    learning_rate: float = 1e-3  # after a linear warm-up over a twentieth of the steps; then linear to 0
    layers: int = 6
    width: int = 128
    heads: int = 2
    vocab_size: int = 8000
    max_length: int = 48  # tokens of a sentence
    max_positions: int = 128
    encoder_masked: float = 0.3  # RetroMAE: 15-30 % in the encoder
    decoder_masked: float = 0.6  # and 50-70 % in the decoder,
    decoder_scored: float = 0.3  # of which these are rebuilt for the loss: half of the work, the same expectation
    pair_every: int = 8  # with ordered text, every so many steps are BERT's sentence pairs
    held_out: int = 2000  # sentences kept for the held-out loss
    evaluations: int = 20
    dropout: float = 0.0  # a small model on new text does not overfit, and drawing masks costs a third of the time
    bf16: bool = False  # autocast; worth it where the processor has bfloat16 matrix units
    seed: int = 0


def pretrain(
    config: PretrainConfig,
    sentences: Iterable[str],
    folder: str | Path,
    *,
    ordered: Iterable[str] | None = None,
    checkpoint: str | Path | None = None,
) -> dict:
    """Train tokenizer and backbone, write a stock transformers folder (`BertForPreTraining`, float16); returns what a card needs.

    sentences: the text, read twice (tokenizer, then tokens). ordered: text whose sentences follow one another, for the
        next-sentence task; None leaves the pooler as it was drawn.
    checkpoint: a file from which an interrupted run goes on to the very same result; removed at the end.

    Returns config, tokens seen, and `curve`: step, held-out masked-LM loss (nats, at config.encoder_masked), and the
    running training losses.

    Raises DataError when there are fewer sentences than a batch and the held-out ones, SettingsError for a checkpoint of
    another run.
    """
    torch.manual_seed(config.seed)
    tokenizer = train_tokenizer(sentences, vocab_size=config.vocab_size, max_length=config.max_positions)
    rows = Rows.tokenize(sentences, tokenizer, max_length=config.max_length)
    if len(rows) < config.batch_size + config.held_out:
        raise DataError(
            f"pretraining got {len(rows)} sentences; it needs at least {config.batch_size + config.held_out} "
            f"(a batch of {config.batch_size} and {config.held_out} held out)"
        )
    in_order = Rows.tokenize(ordered, tokenizer, max_length=config.max_length) if ordered is not None else None
    run = _Run(config, tokenizer, rows, in_order, checkpoint and Path(checkpoint))
    report = run.train()
    for name in ("hidden_dropout_prob", "attention_probs_dropout_prob"):
        setattr(run.model.config, name, FINE_TUNING_DROPOUT)
    with new_folder(folder) as target:
        run.model.half().save_pretrained(target)
        tokenizer.save_pretrained(target)
    if run.checkpoint:
        run.checkpoint.unlink(missing_ok=True)
    return {"config": asdict(config), "sentences": len(rows), **report}


def held_out_positions(sentences: int, config: PretrainConfig) -> np.ndarray:
    """Which of so many sentences are kept from training, sorted."""
    return np.sort(np.random.default_rng(config.seed).permutation(sentences)[: config.held_out])


def start_embeddings(embedding: nn.Embedding, vectors: np.ndarray) -> None:
    """Put word vectors into the embedding at BERT's scale (0.02); rows without counts keep their random start.

    From a random start the loss sits on its unigram plateau for ten million tokens; from these it leaves it at once.
    """
    start = torch.as_tensor(vectors, dtype=embedding.weight.dtype)
    known = start.norm(dim=1) > 1e-6
    with torch.no_grad():
        embedding.weight[known] = 0.02 * start[known] / start[known].std()


class _Run:
    """The moving parts of one run: model, optimizer, step, curve, and their checkpoint."""

    def __init__(
        self, config: PretrainConfig, tokenizer: PreTrainedTokenizerBase, rows: Rows, ordered: Rows | None, checkpoint
    ):
        self.config, self.rows, self.ordered, self.checkpoint = config, rows, ordered, checkpoint
        self.pad_id, self.mask_id = tokenizer.pad_token_id, tokenizer.mask_token_id
        self.special = torch.tensor(tokenizer.all_special_ids)
        self.model = BertForPreTraining(_bert_config(config, tokenizer))
        self.bottleneck = Bottleneck(self.model.config)
        self.held_out = held_out_positions(len(rows), config)
        self.train_rows = np.setdiff1d(np.arange(len(rows)), self.held_out)
        self.parameters = [*self.model.parameters(), *self.bottleneck.parameters()]
        self.optimizer = torch.optim.AdamW(
            self.parameters, lr=config.learning_rate, weight_decay=0.01, eps=1e-6, fused=True
        )
        warmup = max(1, config.steps // 20)
        self.schedule = torch.optim.lr_scheduler.LambdaLR(
            self.optimizer, lambda step: min((step + 1) / warmup, (config.steps - step) / max(1, config.steps - warmup))
        )
        self.step, self.tokens, self.curve, self.recent = 0, 0, [], {}
        self.key = {**asdict(config), "text": hashlib.sha256(rows.flat).hexdigest()}
        if checkpoint and checkpoint.is_file():
            self._resume()
        else:
            vectors = ppmi_vectors(cooccurrence(rows, len(tokenizer)), config.width, seed=config.seed)
            start_embeddings(self.model.bert.embeddings.word_embeddings, vectors)

    def train(self) -> dict:
        config = self.config
        bar = progress_bar("pretraining", config.steps)
        bar.update(self.step)
        drawn = batches(self.rows.lengths[self.train_rows], config.batch_size, seed=config.seed)
        for which in itertools.islice(drawn, self.step, config.steps):
            losses = self._losses(self.train_rows[which])
            self.optimizer.zero_grad()
            sum(losses.values()).backward()
            nn.utils.clip_grad_norm_(self.parameters, 1.0)
            self.optimizer.step()
            self.schedule.step()
            self.step += 1
            for name, loss in losses.items():
                self.recent[name] = 0.98 * self.recent.get(name, loss.item()) + 0.02 * loss.item()
            bar.set_postfix_str(", ".join(f"{k} {v:.2f}" for k, v in self.recent.items()), refresh=False)
            bar.update()
            if self.step % max(1, config.steps // config.evaluations) == 0 or self.step == config.steps:
                self.curve.append({"step": self.step, "held_out": self._held_out_loss(), **self.recent})
            if self.checkpoint and self.step % CHECKPOINT_EVERY == 0:
                self._save()
        bar.close()
        return {"tokens_seen": self.tokens, "curve": self.curve}

    def _losses(self, which: np.ndarray) -> dict[str, torch.Tensor]:
        config = self.config
        ids_of = {"mask_id": self.mask_id, "pad_id": self.pad_id}
        self.model.train()
        with torch.autocast("cpu", torch.bfloat16, enabled=config.bf16):
            if self.ordered is not None and self.step % config.pair_every == 0:
                random = np.random.default_rng((config.seed, self.step))
                ids, segments, labels = neighbours(self.ordered, config.batch_size // 2, self.pad_id, random)
                words, follows = pair_losses(self.model, ids, segments, labels, self.special, **ids_of)
                losses = {"masked LM of pairs": words, "next sentence": follows}
            else:
                ids = self.rows.padded(which, self.pad_id)
                words, rebuilt = sentence_losses(
                    self.model, self.bottleneck, ids, self.special, **ids_of,
                    encoder_masked=config.encoder_masked, decoder_masked=config.decoder_masked,
                    decoder_scored=config.decoder_scored,
                )  # fmt: skip
                losses = {"masked LM": words, "bottleneck": rebuilt}
        self.tokens += int((ids != self.pad_id).sum())
        return losses

    @torch.no_grad()
    def _held_out_loss(self) -> float:
        return held_out_loss(
            self.model, self.rows, self.held_out, self.special,
            mask_id=self.mask_id, pad_id=self.pad_id, share=self.config.encoder_masked,
        )  # fmt: skip

    def _state(self) -> dict:
        parts = {"model": self.model, "bottleneck": self.bottleneck, "optimizer": self.optimizer}
        return {name: part.state_dict() for name, part in parts.items()} | {"schedule": self.schedule.state_dict()}

    def _save(self) -> None:
        progress = {"step": self.step, "tokens": self.tokens, "curve": self.curve, "recent": self.recent}
        temporary = self.checkpoint.with_suffix(".tmp")
        torch.save(
            {**self._state(), "progress": progress, "random": torch.get_rng_state(), "key": self.key},
            temporary,
        )
        os.replace(temporary, self.checkpoint)

    def _resume(self) -> None:
        saved = torch.load(self.checkpoint, weights_only=True)
        if saved["key"] != self.key:
            raise SettingsError(f"{self.checkpoint} is of a run on other text or settings; remove it to start anew")
        for name in ("model", "bottleneck", "optimizer", "schedule"):
            getattr(self, name).load_state_dict(saved[name])
        for name, value in saved["progress"].items():
            setattr(self, name, value)
        torch.set_rng_state(saved["random"])


@torch.no_grad()
def held_out_loss(
    model: BertForPreTraining, rows: Rows, which: np.ndarray, special: torch.Tensor, *, mask_id: int, pad_id: int,
    share: float, batch_size: int = 250,
) -> float:  # fmt: skip
    """Masked-LM loss in nats, dropout off, the same masks at every call; the caller's random state is left alone."""
    model.eval()
    total, count = 0.0, 0
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        for part in np.array_split(which, max(1, len(which) // batch_size)):
            ids = rows.padded(part, pad_id)
            hidden = chosen(ids, special, share)
            states = model.bert(ids.masked_fill(hidden, mask_id), (ids != pad_id).long()).last_hidden_state
            total += token_loss(model, states, ids, hidden).item() * int(hidden.sum())
            count += int(hidden.sum())
    return total / count


def _bert_config(config: PretrainConfig, tokenizer: PreTrainedTokenizerBase) -> BertConfig:
    return BertConfig(
        vocab_size=len(tokenizer),
        hidden_size=config.width,
        num_hidden_layers=config.layers,
        num_attention_heads=config.heads,
        intermediate_size=4 * config.width,
        max_position_embeddings=config.max_positions,
        pad_token_id=tokenizer.pad_token_id,
        hidden_dropout_prob=config.dropout,
        attention_probs_dropout_prob=config.dropout,
    )
