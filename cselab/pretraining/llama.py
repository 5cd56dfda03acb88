"""Pretraining of a small causal decoder for BeLLM: Llama's architecture, next-token prediction."""

from collections.abc import Iterable
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerBase

from cselab.data.token_rows import Rows
from cselab.pretraining.run import LoopConfig, Run, train_tokenizer_and_tokenize


def pretrain_decoder(
    config: LoopConfig,
    sentences: Iterable[str],
    folder: str | Path,
    *,
    checkpoint: str | Path | None = None,
) -> dict:
    """Train a tokenizer and a decoder; write a stock transformers folder.

    The model is `LlamaForCausalLM` in float16. A sentence is `[CLS] … [SEP]`.

    Args:
        config: Settings of the model and its training.
        sentences: As in `cselab.pretraining.bert.pretrain`.
        folder: Folder of the decoder.
        checkpoint: As in `cselab.pretraining.bert.pretrain`.

    Returns:
        The content of a card, as `cselab.pretraining.bert.pretrain`; `curve` has the next-token
            loss.

    Raises:
        DataError: As `cselab.pretraining.run.Run`.
        SettingsError: As `cselab.pretraining.run.Run`.
        ModelError: Before the training, if `folder` holds something else.
    """
    tokenizer, rows = train_tokenizer_and_tokenize(config, sentences)
    return LlamaRun(config, tokenizer, rows, checkpoint).train_to(folder)


class LlamaRun(Run):
    """Next-token prediction on single sentences."""

    def __init__(
        self,
        config: LoopConfig,
        tokenizer: PreTrainedTokenizerBase,
        rows: Rows,
        checkpoint: str | Path | None,
    ):
        model = LlamaForCausalLM(_llama_config(config, tokenizer))
        super().__init__(config, tokenizer, rows, model, checkpoint)

    def losses(self, which: np.ndarray) -> dict[str, Float[Tensor, ""]]:
        """Next-token loss of the sentences.

        Args:
            which: Positions of the sentences.
        """
        return {"next token": next_token_loss(self.model, self.padded(which), self.pad_id)}

    def held_out_loss(self) -> float:
        """Next-token loss of the held-out sentences, in nats."""
        return next_token_held_out(self.model, self.rows, self.held_out, self.pad_id)


def next_token_loss(
    model: LlamaForCausalLM, ids: Int[Tensor, "B L"], pad_id: int
) -> Float[Tensor, ""]:
    """Mean cross-entropy of every token except the first, given the previous tokens.

    Args:
        model: The decoder.
        ids: Tokens, (B, L).
        pad_id: Id of padding, which is not counted.
    """
    attention_mask = (ids != pad_id).long()
    output = model.model(input_ids=ids, attention_mask=attention_mask, use_cache=False)
    is_token = ids[:, 1:] != pad_id
    logits = model.lm_head(output.last_hidden_state[:, :-1][is_token])
    return F.cross_entropy(logits.float(), ids[:, 1:][is_token])


@torch.no_grad()
def next_token_held_out(
    model: LlamaForCausalLM, rows: Rows, which: np.ndarray, pad_id: int, *, batch_size: int = 250
) -> float:
    """Next-token loss in nats, a mean over all tokens.

    Args:
        model: The decoder.
        rows: Tokens of the text.
        which: Positions of the held-out sentences.
        pad_id: Id of padding, which is not counted.
        batch_size: Sentences at a time.
    """
    model.eval()
    total, count = 0.0, 0
    for part in np.array_split(which, max(1, len(which) // batch_size)):
        ids = rows.padded(part, pad_id).to(model.device)
        tokens = int((ids[:, 1:] != pad_id).sum())
        total += next_token_loss(model, ids, pad_id).item() * tokens
        count += tokens
    return total / count


def _llama_config(config: LoopConfig, tokenizer: PreTrainedTokenizerBase) -> LlamaConfig:
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
