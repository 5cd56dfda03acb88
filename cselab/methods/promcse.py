"""PromCSE (Jiang et al. 2022): the encoder is frozen, and only a soft prompt before the sentence learns."""

from collections.abc import Sequence
from pathlib import Path

import torch
from jaxtyping import Float
from torch import Tensor

from cselab.data.augment import wrapped
from cselab.methods.base import Batch, register
from cselab.methods.simcse import SimCSE
from cselab.models import SentenceEncoder, load_backbone, load_tokenizer
from cselab.settings import Settings

LENGTH = 16


@register("promcse")
class PromCSE(SimCSE):
    """SimCSE in which only the embeddings of 16 new tokens are trained; they stand before every sentence, as the encoder's prompt.

    Simplified: the prompt is at the input, where the paper has one in every layer, so that the saved encoder is a stock one. It
    takes rates a thousand times SimCSE's. The energy hinge of its supervised form is left out.
    """

    @classmethod
    def build(cls, settings: Settings, towers: Sequence[str | Path]) -> "PromCSE":
        backbone, tokenizer = load_backbone(towers[0], dropout=settings.dropout), load_tokenizer(towers[0])
        known, names = len(tokenizer), [f"[PROMPT{i}]" for i in range(LENGTH)]
        tokenizer.add_tokens(names, special_tokens=True)
        backbone.resize_token_embeddings(len(tokenizer))
        backbone.requires_grad_(False)
        words = backbone.get_input_embeddings().weight.requires_grad_()
        words.register_hook(
            lambda gradient: gradient * (torch.arange(len(gradient), device=gradient.device) >= known)[:, None]
        )
        prompt = " ".join([*names, "{sentence}"])
        return cls(SentenceEncoder(backbone, tokenizer, pooling=settings.pooling, prompt=prompt), settings)

    def rows(self, batch: Batch) -> dict[str, Float[Tensor, "B d"]]:
        return {"sentence": self.head(self.embed(batch))}

    def embed(self, batch: Batch) -> Float[Tensor, "B d"]:
        known = len(self.encoder.tokenizer) - LENGTH
        return self.encoder(wrapped(batch, self.tokens, list(range(known, known + LENGTH)), []))
