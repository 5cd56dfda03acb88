"""Masked-LM pretraining on single sentences, with a bottleneck head that teaches [CLS] to hold the sentence.

Masked LM alone teaches [CLS] nothing, and contrastive training starts from what [CLS] knows. RetroMAE (Xiao et al. 2022)
adds one decoder layer that must rebuild a heavily masked copy of the sentence from the encoder's [CLS] state.
"""

import math
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn
from transformers import BertConfig, BertForMaskedLM, BertModel, PreTrainedTokenizerBase
from transformers.models.bert.modeling_bert import BertLayer

from cselab.errors import DataError
from cselab.models.folder import new_folder
from cselab.pretraining.tokenizer import train_tokenizer
from cselab.pretraining.word_vectors import cooccurrence, ppmi_vectors
from cselab.training.progress import progress_bar


@dataclass(frozen=True)
class PretrainConfig:
    """Shape, text budget and schedule of a small BERT. The defaults make the tiny backbone on the spot."""

    layers: int = 6
    width: int = 128
    heads: int = 2
    vocab_size: int = 8000
    max_length: int = 48
    max_positions: int = 128
    steps: int = 600
    batch_size: int = 64
    learning_rate: float = 1e-3
    encoder_masked: float = 0.3  # RetroMAE: 15-30 % in the encoder
    decoder_masked: float = 0.6  # and 50-70 % in the decoder
    seed: int = 0


class Bottleneck(nn.Module):
    """RetroMAE's decoder: [CLS] state plus embeddings of a heavily masked copy, through one layer, to the lost tokens."""

    def __init__(self, config: BertConfig):
        super().__init__()
        self.layer = BertLayer(config)

    def forward(
        self, cls: Float[Tensor, "B d"], embeddings: Float[Tensor, "B L d"], attention_mask: Int[Tensor, "B L"]
    ) -> Float[Tensor, "B L d"]:
        states = torch.cat([cls[:, None], embeddings[:, 1:]], dim=1)
        return self.layer(states, attention_mask[:, None, None, :].bool())


def pretrain(config: PretrainConfig, sentences: Iterable[str], folder: str | Path) -> dict[str, float]:
    """Train tokenizer and backbone on `sentences` and write a stock transformers folder; returns the last losses.

    Raises DataError when there are fewer sentences than a batch.
    """
    sentences = list(sentences)
    if len(sentences) < config.batch_size:
        raise DataError(f"pretraining needs at least {config.batch_size} sentences, got {len(sentences)}")
    torch.manual_seed(config.seed)
    tokenizer = train_tokenizer(sentences, vocab_size=config.vocab_size, max_length=config.max_positions)
    rows = tokenizer(sentences, truncation=True, max_length=config.max_length, return_attention_mask=False)["input_ids"]
    model = BertForMaskedLM(_bert_config(config, tokenizer))
    vectors = ppmi_vectors(cooccurrence(rows, len(tokenizer)), config.width, seed=config.seed)
    start_embeddings(model.bert.embeddings.word_embeddings, vectors)
    losses = _train(model, Bottleneck(model.config), tokenizer, rows, config)
    encoder = BertModel(model.config)
    encoder.load_state_dict({**encoder.state_dict(), **model.bert.state_dict()})
    with new_folder(folder) as target:
        encoder.save_pretrained(target)
        tokenizer.save_pretrained(target)
    return {**losses, **{f"config_{key}": value for key, value in asdict(config).items()}}


def start_embeddings(embedding: nn.Embedding, vectors: np.ndarray) -> None:
    """Put word vectors into the embedding at BERT's scale (0.02); rows without counts keep their random start.

    From a random start the loss sits on its unigram plateau for ten million tokens; from these it leaves it at once.
    """
    start = torch.as_tensor(vectors, dtype=embedding.weight.dtype)
    known = start.abs().sum(1) > 0
    with torch.no_grad():
        embedding.weight[known] = 0.02 * start[known] / start[known].std()


def masked(
    ids: Int[Tensor, "B L"], special: Int[Tensor, " S"], mask_id: int, share: float
) -> tuple[Int[Tensor, "B L"], Int[Tensor, "B L"]]:
    """Inputs with `share` of the ordinary tokens replaced by [MASK], and labels that are -100 elsewhere."""
    chosen = (torch.rand(ids.shape) < share) & ~torch.isin(ids, special)
    return ids.masked_fill(chosen, mask_id), ids.masked_fill(~chosen, -100)


def _bert_config(config: PretrainConfig, tokenizer: PreTrainedTokenizerBase) -> BertConfig:
    return BertConfig(
        vocab_size=len(tokenizer),
        hidden_size=config.width,
        num_hidden_layers=config.layers,
        num_attention_heads=config.heads,
        intermediate_size=4 * config.width,
        max_position_embeddings=config.max_positions,
        pad_token_id=tokenizer.pad_token_id,
    )


def _train(
    model: BertForMaskedLM, bottleneck: Bottleneck, tokenizer, rows: list[list[int]], config: PretrainConfig
) -> dict:
    parameters = [*model.parameters(), *bottleneck.parameters()]
    optimizer = torch.optim.AdamW(parameters, lr=config.learning_rate, weight_decay=0.01, fused=True)
    warmup = max(1, config.steps // 20)
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda step: min((step + 1) / warmup, (config.steps - step) / (config.steps - warmup))
    )
    special = torch.tensor(tokenizer.all_special_ids)
    model.train()
    bar = progress_bar("pretraining", config.steps)
    recent = []
    for ids in _batches(rows, config, tokenizer.pad_token_id):
        attention = (ids != tokenizer.pad_token_id).long()
        inputs, labels = masked(ids, special, tokenizer.mask_token_id, config.encoder_masked)
        decoder_inputs, decoder_labels = masked(ids, special, tokenizer.mask_token_id, config.decoder_masked)
        states = model.bert(input_ids=inputs, attention_mask=attention).last_hidden_state
        rebuilt = bottleneck(states[:, 0], model.bert.embeddings(input_ids=decoder_inputs), attention)
        encoder_loss = _token_loss(model, states, labels)
        decoder_loss = _token_loss(model, rebuilt, decoder_labels)
        optimizer.zero_grad()
        (encoder_loss + decoder_loss).backward()
        nn.utils.clip_grad_norm_(parameters, 1.0)
        optimizer.step()
        schedule.step()
        recent = [*recent[-49:], (encoder_loss.item(), decoder_loss.item())]
        bar.set_postfix_str(f"masked-LM loss {recent[-1][0]:.2f}", refresh=False)
        bar.update()
    bar.close()
    encoder_loss, decoder_loss = np.mean(recent, axis=0)
    return {"masked_lm_loss": float(encoder_loss), "bottleneck_loss": float(decoder_loss)}


def _token_loss(
    model: BertForMaskedLM, states: Float[Tensor, "B L d"], labels: Int[Tensor, "B L"]
) -> Float[Tensor, ""]:
    """Cross-entropy at the masked places only: the vocabulary projection is most of the work of a small model."""
    where = labels != -100
    return F.cross_entropy(model.cls(states[where]).float(), labels[where])


def _batches(rows: list[list[int]], config: PretrainConfig, pad: int) -> Iterator[Int[Tensor, "B L"]]:
    """`steps` batches of like lengths; a new shuffle an epoch."""
    random = np.random.default_rng(config.seed)
    lengths = np.array([len(row) for row in rows])
    per_epoch = len(rows) // config.batch_size
    for epoch in range(math.ceil(config.steps / per_epoch)):
        order = random.permutation(len(rows))[: per_epoch * config.batch_size]
        order = order[np.argsort(lengths[order] + random.uniform(-2, 2, len(order)), kind="stable")]
        batches = random.permutation(order.reshape(-1, config.batch_size))
        for batch in batches[: config.steps - epoch * per_epoch]:
            longest = lengths[batch].max()
            yield torch.tensor([rows[i] + [pad] * (longest - lengths[i]) for i in batch])
