"""Pretraining of a small BERT or Llama on plain sentences.

Masked LM does not train [CLS], from which contrastive training starts. Therefore, by default,
[CLS] also predicts the words of its sentence, weighted towards rare ones. A BERT's pooler is
trained on the next-sentence task, if the text keeps its order. The Llama, for BeLLM, predicts the
next token.
"""

import hashlib
from collections.abc import Iterable, Mapping, MutableMapping, Sequence
from dataclasses import asdict
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from transformers import LlamaForCausalLM, PreTrainedTokenizerBase

from cselab.data.token_rows import Rows
from cselab.errors import DataError
from cselab.methods.baselines.sif import sif_weights
from cselab.models.folder import check_folder, new_folder
from cselab.seals import remove
from cselab.study.pretraining.architectures import (
    BackboneConfig,
    Kind,
    build_model,
    init_embeddings,
)
from cselab.study.pretraining.objectives import (
    encoder_losses,
    held_out_loss,
    next_sentence_pairs,
    next_token_loss,
)
from cselab.study.pretraining.tokenizer import train_tokenizer
from cselab.study.pretraining.trainer import CurveTrainer

BERT_OBJECTIVES: Mapping[str, Any] = MappingProxyType(
    {"masked": 0.15, "bag_weight": 0.0, "dropout_last": 1.0}
)
"""Settings for BERT's own objectives, the start of the papers.

Devlin et al. 2019, https://arxiv.org/abs/1810.04805, section 3.1. BERT's steps are all on pairs;
here most are not, because most corpora do not keep their order. With every second step on pairs,
[CLS] scored seven points less on STS-B dev.
"""


def pretrain(
    kind: Kind,
    config: BackboneConfig,
    sentences: Iterable[str],
    folder: str | Path,
    *,
    ordered: Iterable[str] | None = None,
) -> dict:
    """Train a tokenizer and a backbone; write a stock transformers folder in float16.

    After an interruption, the same call continues from `<folder>.checkpoints` to exactly the same
    result. A sentence is `[CLS] … [SEP]`, also for a Llama.

    Args:
        sentences: The text, read twice (for the tokenizer, then for the tokens).
        ordered: Text in its original order, for a BERT's next-sentence task; None leaves the pooler
            untrained.

    Returns:
        The content of a card; `curve` has step, held-out loss (nats), training losses and tokens.

    Raises:
        DataError, SettingsError, ModelError: Before the training, for too little text, checkpoints
            of other text or settings, and a folder that holds something else.
    """
    check_folder(folder)
    torch.manual_seed(config.seed)  # of the weights, which are drawn next
    sizes = {"vocab_size": config.vocab_size, "max_length": config.max_positions}
    tokenizer, cut = train_tokenizer(sentences, **sizes), config.max_length
    rows = Rows.tokenize(sentences, tokenizer, max_length=cut)
    in_order = None if ordered is None else Rows.tokenize(ordered, tokenizer, max_length=cut)
    checkpoints = Path(f"{folder}.checkpoints")
    trainer = BackboneTrainer(kind, config, tokenizer, rows, checkpoints, in_order)
    seconds = trainer.run()
    with new_folder(folder) as work:
        trainer.model.cpu().half().save_pretrained(work)
        tokenizer.save_pretrained(work)
    remove(checkpoints)
    return {
        "config": asdict(config),
        "sentences": len(rows),
        "tokens_seen": trainer.tokens,
        "curve": trainer.curve,
        "hours": round(seconds / 3600, 2),
    }


class BackboneTrainer(CurveTrainer):
    """Trainer of a backbone that `pretrain` describes, on tokens of its text."""

    config: BackboneConfig

    def __init__(
        self,
        kind: Kind,
        config: BackboneConfig,
        tokenizer: PreTrainedTokenizerBase,
        rows: Rows,
        checkpoints: Path,
        ordered: Rows | None = None,
    ):
        if len(rows) < (least := config.batch_size + config.held_out):
            raise DataError(
                f"{len(rows)} sentences are too few: a batch and those held out take {least}"
            )
        self.tokenizer, self.rows, self.ordered = tokenizer, rows, ordered
        self.held_out = held_out_positions(len(rows), config)
        self.weights = None
        if kind != "llama" and config.bag_weight:
            weights = sif_weights(rows, len(tokenizer), tokenizer.all_special_ids)
            self.weights = torch.tensor(weights, dtype=torch.float32, device=config.device)
        model = build_model(kind, config, tokenizer)
        init_embeddings(model.get_input_embeddings(), rows, config)
        train = np.setdiff1d(np.arange(len(rows)), self.held_out)
        super().__init__(
            model,
            config,
            train.tolist(),
            rows.lengths[train],
            self.batch,
            text=hashlib.sha256(rows.flat.data).hexdigest(),
            checkpoints=checkpoints,
            adam_epsilon=1e-6,
        )
        self.tokens = self.curve[-1]["tokens"] if self.curve else 0

    def batch(self, positions: Sequence[int]) -> dict[str, Tensor]:
        """Sentences, padded to the longest."""
        return self.rows.batch(positions, self.tokenizer.pad_token_id)

    def pairs(self, step: int) -> dict[str, Tensor]:
        """Ordered pairs of a step, half as many as sentences of another step."""
        assert self.ordered is not None
        pad = self.tokenizer.pad_token_id
        random = np.random.default_rng((self.config.seed, step))
        ids, segments, labels = next_sentence_pairs(
            self.ordered, self.config.batch_size // 2, pad, random
        )
        return {
            "input_ids": ids,
            "attention_mask": (ids != pad).long(),
            "token_type_ids": segments,
            "next_sentence_label": labels,
        }

    def training_step(self, model, inputs, num_items_in_batch=None) -> Tensor:
        """Train on the sentences, or in every `pair_every`-th step on ordered pairs."""
        step = self.state.global_step
        if self.ordered is not None and step % self.config.pair_every == 0:
            inputs = self.pairs(step)
        self.tokens += int(inputs["attention_mask"].sum())
        return super().training_step(model, inputs, num_items_in_batch)

    def losses(self, batch: MutableMapping[str, Tensor]) -> dict[str, Tensor]:
        """Losses of sentences or pairs, weighted."""
        config = self.config
        if isinstance(self.model, LlamaForCausalLM):
            return {"next token": next_token_loss(self.model, *batch.values())}
        late = self.state.global_step >= (1 - config.dropout_last) * config.steps
        for part in self.model.modules():
            if isinstance(part, nn.Dropout):
                part.p = config.dropout if late else 0.0
        losses = encoder_losses(
            self.model, self.tokenizer, batch, masked=config.masked, weights=self.weights
        )
        if "bag of words" in losses:
            losses["bag of words"] = config.bag_weight * losses["bag of words"]
        return losses

    def measured(self) -> dict[str, float]:
        """Held-out loss, and tokens seen in training."""
        options = {"masked": self.config.masked}
        loss = held_out_loss(self.model, self.tokenizer, self.rows, self.held_out, **options)
        return {"held_out": loss, "tokens": self.tokens}


def held_out_positions(sentences: int, config: BackboneConfig) -> np.ndarray:
    """Sorted positions of the held-out ones among a number of sentences."""
    return np.sort(np.random.default_rng(config.seed).permutation(sentences)[: config.held_out])
