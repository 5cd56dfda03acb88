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
from cselab.pretraining.encoder import EncoderConfig, EncoderRun
from cselab.pretraining.objectives import pair_losses
from cselab.pretraining.run import train_tokenizer_and_tokenize


@dataclass(frozen=True)
class PretrainConfig(EncoderConfig):
    """Settings of masked LM, bag of words and next sentence."""

    pair_every: int = 8
    """With ordered text, one of so many steps is on BERT's sentence pairs, 15 % masked as there."""


BERT_OBJECTIVES: Mapping[str, Any] = MappingProxyType(
    {"masked": 0.15, "bag_weight": 0.0, "dropout_last": 1.0}
)
"""Settings of `EncoderConfig` for masked LM (in a BERT, and next sentence) alone, with dropout in
every step.

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

    Args:
        config: Settings of the model and its training.
        sentences: The text, read twice (for the tokenizer, then for the tokens).
        folder: Folder of the backbone.
        ordered: Text in its original order, for the next-sentence task; None leaves the pooler
            untrained.
        checkpoint: A file from which an interrupted run continues to exactly the same result;
            removed at the end.

    Returns:
        The content of a card: config, tokens seen, hours, and `curve`: step, held-out masked-LM
            loss (nats, at config.masked) and running training losses.

    Raises:
        DataError: As `cselab.pretraining.run.Run`.
        SettingsError: As `cselab.pretraining.run.Run`.
        ModelError: Before the training, if `folder` holds something else.
    """
    tokenizer, rows = train_tokenizer_and_tokenize(config, sentences)
    in_order = None
    if ordered is not None:
        in_order = Rows.tokenize(ordered, tokenizer, max_length=config.max_length)
    return BertRun(config, tokenizer, rows, in_order, checkpoint).train_to(folder)


class BertRun(EncoderRun):
    """Masked LM and bag of words on single sentences; with ordered text, some steps on pairs."""

    config: PretrainConfig

    def __init__(
        self,
        config: PretrainConfig,
        tokenizer: PreTrainedTokenizerBase,
        rows: Rows,
        ordered: Rows | None,
        checkpoint: str | Path | None,
    ):
        self.ordered = ordered
        model = BertForPreTraining(_bert_config(config, tokenizer))
        super().__init__(config, tokenizer, rows, model, checkpoint)

    def losses(self, which: np.ndarray) -> dict[str, torch.Tensor]:
        """Losses of the sentences, or in every `pair_every`-th step those of ordered pairs.

        Args:
            which: Positions of the sentences.
        """
        config = self.config
        if self.ordered is None or self.step % config.pair_every:
            return super().losses(which)
        self.set_dropout()
        random = np.random.default_rng((config.seed, self.step))
        ids, segments, labels = next_sentence_pairs(
            self.ordered, config.batch_size // 2, self.pad_id, random
        )
        self.tokens += int((ids != self.pad_id).sum())
        ids, segments, labels = (x.to(self.device) for x in (ids, segments, labels))
        words, follows = pair_losses(self.model, ids, segments, labels, self.special, **self.ids_of)
        return {"masked LM of pairs": words, "next sentence": follows}


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
