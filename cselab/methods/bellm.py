"""BeLLM (Li and Li 2024): a decoder whose last layer attends both ways, trained by LoRA on triplets."""

from collections.abc import Sequence
from pathlib import Path

import torch

from cselab.methods.base import register
from cselab.methods.supervised import SupervisedSimCSE
from cselab.models import SentenceEncoder, add_lora, load_decoder
from cselab.settings import Settings


@register("bellm")
class BeLLM(SupervisedSimCSE):
    """Supervised SimCSE's loss (Eq. 6) on the representative word of a prompt, the state of its last token.

    `bidirectional` ("none", "last", "all", "addition") are the rows of Table 4. Under a causal mask the last token attends
    to every token already, so with `decoder_pooling="last_token"` the last layer's mask changes neither embedding nor
    gradient: "last" is "none". Only a pooling that reads other tokens ("mean", what the released flag says) can tell them
    apart. (Padding stays masked here, as in the paper's equations; the authors' billm unmasks it too.)

    `lora_rank=0` trains all weights. Rows are triplets in the prompt (`cselab.data.nli.tokenize_triplets`).
    """

    @classmethod
    def build(cls, settings: Settings, towers: Sequence[str | Path]) -> "BeLLM":
        lora = settings.lora_rank > 0
        backbone, tokenizer = load_decoder(
            towers[0], bidirectional=settings.bidirectional, dropout=0.0 if lora else settings.dropout,
            dtype=torch.bfloat16 if lora and settings.bf16 else torch.float32,
        )  # fmt: skip
        if lora:
            add_lora(backbone, rank=settings.lora_rank, alpha=settings.lora_alpha, dropout=settings.lora_dropout)
        encoder = SentenceEncoder(backbone, tokenizer, pooling=settings.decoder_pooling, prompt=settings.prompt)
        return cls(encoder, settings)
