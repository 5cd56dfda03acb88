"""Narrow RoBERTas with random weights, a byte-level tokenizer and the hub's depth."""

from functools import lru_cache
from pathlib import Path

import torch
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, processors, trainers
from transformers import PreTrainedTokenizerFast, RobertaConfig, RobertaForMaskedLM
from transformers.models.roberta.modeling_roberta import RobertaPooler

from cselab.data.synthetic import sentences

TEXTS = [
    "A man is playing a guitar in the park.",
    "Naïve, isn't it? 🎸",
    "The café is closed, and the big red ball is under the table of the old house.",
    "no",
]


def train_byte_tokenizer(text) -> PreTrainedTokenizerFast:
    """A byte-level tokenizer as the hub's RoBERTa has, with a small vocabulary."""
    special = ["<s>", "<pad>", "</s>", "<unk>"]
    names = dict(zip(("bos", "pad", "eos", "unk"), special, strict=True))
    names |= {"cls": "<s>", "sep": "</s>", "mask": "<mask>"}
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=400,
        special_tokens=[*special, AddedToken("<mask>", lstrip=True, special=True)],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(text, trainer)
    tokenizer.post_processor = processors.RobertaProcessing(
        ("</s>", 2), ("<s>", 0), add_prefix_space=False
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        model_max_length=512,
        model_input_names=["input_ids", "attention_mask"],
        **{
            f"{name}_token": token for name, token in {**names, "cls": "<s>", "sep": "</s>"}.items()
        },
    )


@lru_cache
def byte_tokenizer() -> PreTrainedTokenizerFast:
    """Trained on synthetic text, once."""
    return train_byte_tokenizer(sentences(400, 3))


def save_roberta(folder: Path, seed: int, layers: int = 12, *, pooler: bool = True) -> str:
    """Save a random RoBERTa with a masked-LM head and, not as the hub's, a pooler, with gains and
    biases off their defaults; returns the folder."""
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
        if pooler:
            model.roberta.pooler = RobertaPooler(config)
        for parameter in model.parameters():
            parameter.add_(0.02 * torch.randn_like(parameter))
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return str(folder)


def tokenised(texts: list[str]) -> dict[str, torch.Tensor]:
    """The texts as a batch."""
    return dict(byte_tokenizer()(texts, padding=True, return_tensors="pt"))
