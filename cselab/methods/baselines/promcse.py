"""PromCSE (Jiang et al. 2022): a soft prompt before a frozen encoder learns alone."""

from pathlib import Path

import torch
from jaxtyping import Float
from pydantic import field_validator
from torch import Tensor

from cselab.data.augment import wrap_in_prompt
from cselab.methods import Batch, Schedule, register
from cselab.methods.simcse import SimCSE
from cselab.models import SentenceEncoder, load_backbone, load_tokenizer

LENGTH = 16


@register("promcse")
class PromCSE(SimCSE):
    """SimCSE in which only the embeddings of 16 new tokens are trained; they stand before every
    sentence, as the encoder's prompt (https://arxiv.org/abs/2203.06875).

    Simplified: the prompt is at the input, where the paper has one in every layer, so that the
    saved encoder is a stock one. It takes rates a thousand times SimCSE's. The energy hinge of its
    supervised form is left out.
    """

    class Config(SimCSE.Config):
        @field_validator("schedule")
        @classmethod
        def _no_decay(cls, schedule: Schedule) -> Schedule:
            if schedule.weight_decay:
                raise ValueError(
                    f"weight_decay={schedule.weight_decay} would change the embeddings of all "
                    "words, and promcse trains those of its prompt alone; set it to 0"
                )
            return schedule

    paper_row = "PromCSE"

    @classmethod
    def load_encoder(cls, config: Config, folder: str | Path) -> SentenceEncoder:
        backbone, tokenizer = load_backbone(folder, dropout=config.dropout), load_tokenizer(folder)
        known, names = len(tokenizer), [f"[PROMPT{i}]" for i in range(LENGTH)]
        tokenizer.add_tokens(names, special_tokens=True)
        backbone.resize_token_embeddings(len(tokenizer))
        backbone.requires_grad_(False)
        words = backbone.get_input_embeddings().weight.requires_grad_()

        is_new = (torch.arange(len(words)) >= known)[:, None]
        words.register_hook(lambda gradient: gradient * is_new.to(gradient.device))
        prompt = "".join(names) + "{sentence}"  # without spaces, which RoBERTa reads as tokens
        return SentenceEncoder(backbone, tokenizer, pooling=config.pooling, prompt=prompt)

    def project(self, batch: Batch) -> Float[Tensor, "B d"]:
        return self.head(self.embed(batch))

    def embed(self, batch: Batch) -> Float[Tensor, "B d"]:
        known = len(self.encoder.tokenizer) - LENGTH
        prompt = list(range(known, known + LENGTH))
        return self.encoder.embed(wrap_in_prompt(batch, self.tokens, prompt, []))
