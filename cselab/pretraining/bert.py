"""Pretraining a small BERT on plain sentences.

Masked LM alone teaches [CLS] nothing, and contrastive training starts from what [CLS] knows; so each sentence must also be
rebuilt from its [CLS] state (RetroMAE). Where the text keeps its order, the pooler learns BERT's next-sentence task.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from transformers import BertConfig, BertForPreTraining, PreTrainedTokenizerBase

from cselab.models.folder import new_folder
from cselab.pretraining.objectives import Bottleneck, chosen, pair_losses, sentence_losses, token_loss
from cselab.pretraining.run import Run, RunConfig
from cselab.pretraining.text import Rows, neighbours
from cselab.pretraining.tokenizer import train_tokenizer

FINE_TUNING_DROPOUT = 0.1
"""BERT's, written into the saved config: contrastive training makes its views with it."""


@dataclass(frozen=True)
class PretrainConfig(RunConfig):
    """A run of masked LM, bottleneck and next sentence."""

    encoder_masked: float = 0.3  # RetroMAE: 15-30 % in the encoder
    decoder_masked: float = 0.6  # and 50-70 % in the decoder,
    decoder_scored: float = 0.3  # of which these are rebuilt for the loss: half of the work, the same expectation
    pair_every: int = 8  # with ordered text, every so many steps are BERT's sentence pairs
    dropout: float = 0.0  # a small model on new text does not overfit, and drawing masks costs a third of the time


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
    running training losses. Raises as `cselab.pretraining.run.Run`.
    """
    torch.manual_seed(config.seed)
    tokenizer = train_tokenizer(sentences, vocab_size=config.vocab_size, max_length=config.max_positions)
    rows = Rows.tokenize(sentences, tokenizer, max_length=config.max_length)
    in_order = Rows.tokenize(ordered, tokenizer, max_length=config.max_length) if ordered is not None else None
    run = BertRun(config, tokenizer, rows, in_order, checkpoint and Path(checkpoint))
    report = run.train()
    for name in ("hidden_dropout_prob", "attention_probs_dropout_prob"):
        setattr(run.model.config, name, FINE_TUNING_DROPOUT)
    with new_folder(folder) as target:
        run.model.half().save_pretrained(target)
        tokenizer.save_pretrained(target)
    return report


class BertRun(Run):
    def __init__(
        self, config: PretrainConfig, tokenizer: PreTrainedTokenizerBase, rows: Rows, ordered: Rows | None, checkpoint
    ):
        self.model = BertForPreTraining(_bert_config(config, tokenizer))
        self.bottleneck = Bottleneck(self.model.config)
        self.ordered, self.mask_id = ordered, tokenizer.mask_token_id
        super().__init__(config, tokenizer, rows, {"model": self.model, "bottleneck": self.bottleneck}, checkpoint)

    def losses(self, which: np.ndarray) -> dict[str, torch.Tensor]:
        config = self.config
        ids_of = {"mask_id": self.mask_id, "pad_id": self.pad_id}
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

    def held_out_loss(self) -> float:
        return held_out_loss(
            self.model, self.rows, self.held_out, self.special,
            mask_id=self.mask_id, pad_id=self.pad_id, share=self.config.encoder_masked,
        )  # fmt: skip


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
