"""Pretraining of a small BERT on plain sentences.

Masked LM does not train [CLS], from which contrastive training starts. Therefore, by default,
[CLS] also predicts the words of its sentence, weighted towards rare ones. If the text keeps its
order, the pooler is trained on BERT's next-sentence task. `BERT_OBJECTIVES` are the settings
without bag of words: the start of the papers.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import torch
from transformers import BertConfig, BertForPreTraining, PreTrainedTokenizerBase

from cselab.data.token_rows import Rows, next_sentence_pairs
from cselab.methods.word_vectors import sif_weights
from cselab.pretraining.objectives import pair_losses, random_tokens, sentence_losses, token_loss
from cselab.pretraining.run import LoopConfig, Run, train_tokenizer_and_tokenize


@dataclass(frozen=True)
class PretrainConfig(LoopConfig):
    """Settings of masked LM, bag of words and next sentence."""

    masked: float = 0.3
    """Share of masked words in single sentences; in pairs 15 %, as BERT."""
    bag_weight: float = 3.0
    """Weight of the bag-of-words loss; with 1, [CLS] scored a point less on STS-B dev. 0: none."""
    pair_every: int = 8
    """With ordered text, one of so many steps is on BERT's sentence pairs."""
    dropout: float = 0.1
    """As BERT; contrastive training makes its views with it."""
    dropout_last: float = 0.15
    """Share of the steps, the last ones, with dropout: drawing masks takes a third of the time."""


BERT_OBJECTIVES: Mapping[str, Any] = MappingProxyType(
    {"masked": 0.15, "bag_weight": 0.0, "dropout_last": 1.0}
)
"""Settings of `PretrainConfig` for masked LM and next sentence alone, with dropout in every step.

Devlin et al. 2019, https://arxiv.org/abs/1810.04805, section 3.1. BERT's steps are all on pairs;
here most are on single sentences, because most of the corpora do not keep their order. With every
second step on pairs, [CLS] scored seven points less on STS-B dev.
"""


def pretrain(
    config: PretrainConfig,
    sentences: Iterable[str],
    folder: str | Path,
    *,
    ordered: Iterable[str] | None = None,
    checkpoint: str | Path | None = None,
) -> dict:
    """Train a tokenizer and a backbone; write a stock transformers folder.

    The model is `BertForPreTraining` in float16.

    sentences: the text, read twice (for the tokenizer, then for the tokens).
    ordered: text in its original order, for the next-sentence task; None leaves the pooler
        untrained.
    checkpoint: a file from which an interrupted run continues to exactly the same result; removed
        at the end.

    Returns the content of a card: config, tokens seen, and `curve`: step, held-out masked-LM loss
    (nats, at config.masked) and running training losses. Raises as `cselab.pretraining.run.Run`.
    """
    tokenizer, rows = train_tokenizer_and_tokenize(config, sentences)
    in_order = None
    if ordered is not None:
        in_order = Rows.tokenize(ordered, tokenizer, max_length=config.max_length)
    return BertRun(config, tokenizer, rows, in_order, checkpoint).train_to(folder)


class BertRun(Run):
    """Masked LM and bag of words on single sentences; with ordered text, some steps on pairs.

    Without bag of words if its weight is 0.
    """

    def __init__(
        self,
        config: PretrainConfig,
        tokenizer: PreTrainedTokenizerBase,
        rows: Rows,
        ordered: Rows | None,
        checkpoint,
    ):
        self.ordered, self.mask_id = ordered, tokenizer.mask_token_id
        self.weights = None
        if config.bag_weight:
            weights = sif_weights(rows, len(tokenizer), tokenizer.all_special_ids)
            self.weights = torch.tensor(weights, dtype=torch.float32, device=config.device)
        model = BertForPreTraining(_bert_config(config, tokenizer))
        super().__init__(config, tokenizer, rows, model, checkpoint)

    def losses(self, which: np.ndarray) -> dict[str, torch.Tensor]:
        config = self.config
        ids_of = {"mask_id": self.mask_id, "pad_id": self.pad_id}
        late = self.step >= (1 - config.dropout_last) * config.steps
        for part in self.model.modules():
            if isinstance(part, torch.nn.Dropout):
                part.p = config.dropout if late else 0.0
        if self.ordered is not None and self.step % config.pair_every == 0:
            random = np.random.default_rng((config.seed, self.step))
            ids, segments, labels = next_sentence_pairs(
                self.ordered, config.batch_size // 2, self.pad_id, random
            )
            self.tokens += int((ids != self.pad_id).sum())
            ids, segments, labels = (x.to(self.device) for x in (ids, segments, labels))
            words, follows = pair_losses(self.model, ids, segments, labels, self.special, **ids_of)
            losses = {"masked LM of pairs": words, "next sentence": follows}
        else:
            ids = self.padded(which)
            words, bag = sentence_losses(
                self.model, ids, self.special, self.weights, **ids_of, masked=config.masked
            )
            losses = {"masked LM": words}
            if bag is not None:
                losses["bag of words"] = config.bag_weight * bag
        return losses

    def held_out_loss(self) -> float:
        return held_out_loss(
            self.model,
            self.rows,
            self.held_out,
            self.special,
            mask_id=self.mask_id,
            pad_id=self.pad_id,
            share=self.config.masked,
        )


@torch.no_grad()
def held_out_loss(
    model: BertForPreTraining,
    rows: Rows,
    which: np.ndarray,
    special: torch.Tensor,
    *,
    mask_id: int,
    pad_id: int,
    share: float,
    batch_size: int = 250,
) -> float:
    """Masked-LM loss in nats, without dropout, with the same masks at every call.

    Keeps the random state.
    """
    model.eval()
    total, count = 0.0, 0
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        for part in np.array_split(which, max(1, len(which) // batch_size)):
            ids = rows.padded(part, pad_id)
            # drawn on the CPU: the same on every device
            hidden = random_tokens(ids, special.cpu(), share).to(model.device)
            ids = ids.to(model.device)
            output = model.bert(ids.masked_fill(hidden, mask_id), (ids != pad_id).long())
            loss = token_loss(model, output.last_hidden_state, ids, hidden)
            total += loss.item() * int(hidden.sum())
            count += int(hidden.sum())
    return total / count


def _bert_config(config: PretrainConfig, tokenizer: PreTrainedTokenizerBase) -> BertConfig:
    return BertConfig(
        vocab_size=len(tokenizer),
        hidden_size=config.width,
        num_hidden_layers=config.layers,
        num_attention_heads=config.heads,
        intermediate_size=config.inner,
        max_position_embeddings=config.max_positions,
        pad_token_id=tokenizer.pad_token_id,
        hidden_dropout_prob=config.dropout,
        attention_probs_dropout_prob=config.dropout,
    )
