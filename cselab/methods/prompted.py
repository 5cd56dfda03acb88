"""PromptBERT (Jiang et al. 2022): a sentence is what stands for [MASK] in a template; two templates are its two views."""

from collections.abc import Sequence
from pathlib import Path

import torch
from jaxtyping import Float
from torch import Tensor

from cselab.data.augment import wrapped
from cselab.methods.base import Batch, Method, register
from cselab.models import SentenceEncoder, load_backbone, load_tokenizer
from cselab.settings import Settings

TEMPLATES = ('This sentence : "{sentence}" means [MASK] .', 'This sentence of "{sentence}" means [MASK] .')


@register("promptbert")
class PromptBERT(Method):
    """InfoNCE between the [MASK] states under two templates, each less the state of its template alone (template denoising).

    The encoder keeps the first template as its prompt and pools [MASK]; at inference nothing is taken off, as in the paper.
    """

    @classmethod
    def build(cls, settings: Settings, towers: Sequence[str | Path]) -> "PromptBERT":
        backbone, tokenizer = load_backbone(towers[0], dropout=settings.dropout), load_tokenizer(towers[0])
        prompt = TEMPLATES[0].replace("[MASK]", tokenizer.mask_token)
        return cls(SentenceEncoder(backbone, tokenizer, pooling="mask", prompt=prompt), settings)

    def rows(self, batch: Batch) -> dict[str, Float[Tensor, "B d"]]:
        both = [self.denoised(self.texts(batch, view), text) for view, text in enumerate(TEMPLATES)]
        return {"sentence": torch.cat(both)}

    def clean(self, batch: Batch) -> dict[str, Float[Tensor, "N d"]]:
        return {"sentence": self.denoised(self.texts(batch), TEMPLATES[0])}

    def denoised(self, texts: Batch, template: str) -> Float[Tensor, "N d"]:
        """[MASK] of the texts in the template, less [MASK] of the template alone with its words at the same positions."""
        before, _ = self._parts(template)
        first = texts["input_ids"][:, :1]  # [CLS], before [SEP] a text without words
        ids = torch.cat([first, torch.full_like(first, self.encoder.tokenizer.sep_token_id)], dim=1)
        alone = self.framed({"input_ids": ids, "attention_mask": torch.ones_like(ids)}, template)
        words, places = texts["attention_mask"].sum(1) - 2, torch.arange(alone["input_ids"].shape[1], device=ids.device)
        config = self.encoder.backbone.config
        start = 0 if config.model_type == "bert" else config.pad_token_id + 1  # RoBERTa's first position
        positions = start + places + words[:, None] * (places > len(before))
        return self._mask_state(self.framed(texts, template)) - self._mask_state({**alone, "position_ids": positions})

    def framed(self, texts: Batch, template: str = TEMPLATES[0]) -> Batch:
        """The texts in the template."""
        return wrapped(texts, self.tokens, *self._parts(template))

    def embed(self, batch: Batch) -> Float[Tensor, "B d"]:
        return self.encoder.embed(self.framed(batch))

    def _parts(self, template: str) -> list[list[int]]:
        tokenizer = self.encoder.tokenizer
        parts = template.replace("[MASK]", tokenizer.mask_token).split("{sentence}")
        return [tokenizer(part, add_special_tokens=False)["input_ids"] for part in parts]

    def _mask_state(self, batch: Batch) -> Float[Tensor, "N d"]:
        return self.encoder.at_mask(self.encoder.backbone(**batch).last_hidden_state, batch["input_ids"])
