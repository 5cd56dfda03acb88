"""A small Llama for tests of decoders."""

from pathlib import Path

import torch
from transformers import LlamaConfig, LlamaModel


def save_llama(folder: Path, tokenizer, *, layers: int, dtype: torch.dtype = torch.float32) -> Path:
    """Save a random Llama whose two key heads serve four query heads, as in LLaMA 3."""
    config = LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=32,
        intermediate_size=48,
        num_hidden_layers=layers,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=64,
        pad_token_id=tokenizer.pad_token_id,
        initializer_range=0.3,
    )
    torch.manual_seed(0)
    LlamaModel(config).to(dtype).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder
