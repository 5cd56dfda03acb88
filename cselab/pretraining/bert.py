"""Pretraining a small BERT on plain sentences.

Masked LM alone teaches [CLS] nothing, and contrastive training starts from what [CLS] knows; so [CLS] must also name the words
of its sentence, rare ones above all. Where the text keeps its order, the pooler learns BERT's next-sentence task.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from transformers import BertConfig, BertForPreTraining, PreTrainedTokenizerBase

from cselab.pretraining.objectives import chosen, pair_losses, sentence_losses, token_loss
from cselab.pretraining.run import Run, RunConfig, read
from cselab.pretraining.text import Rows, neighbours
from cselab.pretraining.word_vectors import sif_weights


@dataclass(frozen=True)
class PretrainConfig(RunConfig):
    """A run of masked LM, bag of words and next sentence."""

    masked: float = 0.3  # of the words of single sentences; of pairs 15 %, as BERT
    bag_weight: float = 3.0  # of the bag-of-words loss; 1 gave [CLS] a point less on STS-B dev
    pair_every: int = 8  # with ordered text, every so many steps are BERT's sentence pairs
    dropout: float = 0.1  # BERT's; contrastive training makes its views with it,
    dropout_last: float = 0.15  # but only this share of the steps has it: drawing masks costs a third of the time


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

    Returns config, tokens seen, and `curve`: step, held-out masked-LM loss (nats, at config.masked), and the
    running training losses. Raises as `cselab.pretraining.run.Run`.
    """
    tokenizer, rows = read(config, sentences)
    in_order = Rows.tokenize(ordered, tokenizer, max_length=config.max_length) if ordered is not None else None
    return BertRun(config, tokenizer, rows, in_order, checkpoint).into(folder)


class BertRun(Run):
    """Masked LM and bag of words on single sentences; every few steps pairs in order, where there are any."""

    def __init__(
        self, config: PretrainConfig, tokenizer: PreTrainedTokenizerBase, rows: Rows, ordered: Rows | None, checkpoint
    ):
        self.ordered, self.mask_id = ordered, tokenizer.mask_token_id
        weights = sif_weights(rows, len(tokenizer), tokenizer.all_special_ids)
        self.weights = torch.tensor(weights, dtype=torch.float32, device=config.device)
        super().__init__(config, tokenizer, rows, BertForPreTraining(_bert_config(config, tokenizer)), checkpoint)

    def losses(self, which: np.ndarray) -> dict[str, torch.Tensor]:
        config = self.config
        ids_of = {"mask_id": self.mask_id, "pad_id": self.pad_id}
        late = self.step >= (1 - config.dropout_last) * config.steps
        for part in self.model.modules():
            if isinstance(part, torch.nn.Dropout):
                part.p = config.dropout if late else 0.0
        if self.ordered is not None and self.step % config.pair_every == 0:
            random = np.random.default_rng((config.seed, self.step))
            ids, segments, labels = neighbours(self.ordered, config.batch_size // 2, self.pad_id, random)
            self.tokens += int((ids != self.pad_id).sum())
            ids, segments, labels = (x.to(self.device) for x in (ids, segments, labels))
            words, follows = pair_losses(self.model, ids, segments, labels, self.special, **ids_of)
            losses = {"masked LM of pairs": words, "next sentence": follows}
        else:
            ids = self.padded(which)
            words, bag = sentence_losses(self.model, ids, self.special, self.weights, **ids_of, masked=config.masked)
            losses = {"masked LM": words, "bag of words": config.bag_weight * bag}
        return losses

    def held_out_loss(self) -> float:
        return held_out_loss(
            self.model, self.rows, self.held_out, self.special,
            mask_id=self.mask_id, pad_id=self.pad_id, share=self.config.masked,
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
            hidden = chosen(ids, special.cpu(), share).to(model.device)  # drawn on the CPU: the same on every device
            ids = ids.to(model.device)
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
        intermediate_size=config.inner,
        max_position_embeddings=config.max_positions,
        pad_token_id=tokenizer.pad_token_id,
        hidden_dropout_prob=config.dropout,
        attention_probs_dropout_prob=config.dropout,
    )
