"""Pretraining a small causal decoder, for BeLLM: Llama's architecture, next-token prediction on single sentences."""

from collections.abc import Iterable
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerBase

from cselab.pretraining.run import Run, RunConfig, read
from cselab.pretraining.text import Rows


def pretrain_decoder(
    config: RunConfig, sentences: Iterable[str], folder: str | Path, *, checkpoint: str | Path | None = None
) -> dict:
    """Train tokenizer and decoder, write a stock transformers folder (`LlamaForCausalLM`, float16).

    A sentence is `[CLS] … [SEP]`: the tokenizer's first token starts it, its last one ends it.

    Arguments, return value (`curve` holds the next-token loss) and errors as `pretrain`.
    """
    tokenizer, rows = read(config, sentences)
    return LlamaRun(config, tokenizer, rows, checkpoint).into(folder)


class LlamaRun(Run):
    """Next-token prediction on single sentences."""

    def __init__(
        self, config: RunConfig, tokenizer: PreTrainedTokenizerBase, rows: Rows, checkpoint: str | Path | None
    ):
        super().__init__(config, tokenizer, rows, LlamaForCausalLM(_llama_config(config, tokenizer)), checkpoint)

    def losses(self, which: np.ndarray) -> dict[str, Float[Tensor, ""]]:
        return {"next token": next_token_loss(self.model, self.padded(which), self.pad_id)}

    def held_out_loss(self) -> float:
        return next_token_held_out(self.model, self.rows, self.held_out, self.pad_id)


def next_token_loss(model: LlamaForCausalLM, ids: Int[Tensor, "B L"], pad_id: int) -> Float[Tensor, ""]:
    """Mean cross-entropy of every token but the first, from those before it."""
    states = model.model(input_ids=ids, attention_mask=(ids != pad_id).long(), use_cache=False).last_hidden_state
    where = ids[:, 1:] != pad_id
    return F.cross_entropy(model.lm_head(states[:, :-1][where]).float(), ids[:, 1:][where])


@torch.no_grad()
def next_token_held_out(
    model: LlamaForCausalLM, rows: Rows, which: np.ndarray, pad_id: int, *, batch_size: int = 250
) -> float:
    """Next-token loss in nats, a mean over all tokens."""
    model.eval()
    total, count = 0.0, 0
    for part in np.array_split(which, max(1, len(which) // batch_size)):
        ids = rows.padded(part, pad_id).to(model.device)
        tokens = int((ids[:, 1:] != pad_id).sum())
        total += next_token_loss(model, ids, pad_id).item() * tokens
        count += tokens
    return total / count


def _llama_config(config: RunConfig, tokenizer: PreTrainedTokenizerBase) -> LlamaConfig:
    return LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=config.width,
        num_hidden_layers=config.layers,
        num_attention_heads=config.heads,
        intermediate_size=2 * config.inner // 3,  # SwiGLU has three matrices where BERT has two
        max_position_embeddings=config.max_positions,
        tie_word_embeddings=True,
        pad_token_id=tokenizer.pad_token_id,
        bos_token_id=tokenizer.cls_token_id,
        eos_token_id=tokenizer.sep_token_id,
    )
