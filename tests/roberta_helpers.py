"""Narrow RoBERTas with random weights, a byte-level tokenizer and the hub's depth."""

from functools import lru_cache
from pathlib import Path

import torch
from transformers import PreTrainedTokenizerBase, RobertaConfig, RobertaForMaskedLM
from transformers.models.roberta.modeling_roberta import RobertaPooler

from cselab.data.synthetic import sentences
from cselab.study.pretraining.tokenizer import train_byte_tokenizer

TEXTS = [
    "A man is playing a guitar in the park.",
    "Naïve, isn't it? 🎸",
    "The café is closed, and the big red ball is under the table of the old house.",
    "no",
]


@lru_cache
def byte_tokenizer() -> PreTrainedTokenizerBase:
    """As the hub's RoBERTa has, with a small vocabulary."""
    return train_byte_tokenizer(sentences(400, 3), vocab_size=400, max_length=512)


def save_roberta(folder: Path, seed: int, layers: int = 12) -> str:
    """Save a random RoBERTa with a pooler and a masked-LM head, with gains and biases off their
    defaults; returns the folder."""
    tokenizer = byte_tokenizer()
    config = RobertaConfig(
        vocab_size=len(tokenizer),
        num_hidden_layers=layers,
        max_position_embeddings=514,
        type_vocab_size=1,
        layer_norm_eps=1e-5,
        pad_token_id=tokenizer.pad_token_id,
        hidden_size=32,
        num_attention_heads=4,
        intermediate_size=64,
    )
    with torch.random.fork_rng(), torch.no_grad():
        torch.manual_seed(seed)
        model = RobertaForMaskedLM(config)
        model.roberta.pooler = RobertaPooler(config)
        for parameter in model.parameters():
            parameter.add_(0.02 * torch.randn_like(parameter))
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return str(folder)


def tokenised(texts: list[str]) -> dict[str, torch.Tensor]:
    """The texts as a batch."""
    return dict(byte_tokenizer()(texts, padding=True, return_tensors="pt"))
