"""PromptBERT (Jiang et al. 2022): a sentence is what stands for [MASK] in a template; two templates are its two views."""

from collections.abc import Sequence
from pathlib import Path

import torch
from jaxtyping import Float
from torch import Tensor

from cselab.data.augment import joined, wrapped
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

    def denoised(self, view: Batch, template: str) -> Float[Tensor, "N d"]:
        """[MASK] of the text in the template, less [MASK] of the template alone with its words at the same positions."""
        before, after = (
            self.encoder.tokenizer(part, add_special_tokens=False)["input_ids"]
            for part in template.replace("[MASK]", self.encoder.tokenizer.mask_token).split("{sentence}")
        )
        words = view["attention_mask"].sum(1) - 2
        empty = {name: rows[:, :1] for name, rows in view.items()}
        end = torch.full_like(empty["input_ids"], self.encoder.tokenizer.sep_token_id)
        empty = {
            "input_ids": torch.cat([empty["input_ids"], end], 1),
            "attention_mask": torch.ones_like(end).expand(-1, 2),
        }
        alone = joined([wrapped(empty, self.tokens, before, after)], self.tokens)
        places = torch.arange(alone["input_ids"].shape[1], device=words.device)
        alone["position_ids"] = places + words[:, None] * (places > len(before))
        return self._mask_state(wrapped(view, self.tokens, before, after)) - self._mask_state(alone)

    def _mask_state(self, batch: Batch) -> Float[Tensor, "N d"]:
        backbone = self.encoder.backbone
        if "position_ids" in batch and backbone.config.model_type != "bert":
            batch = {**batch, "position_ids": batch["position_ids"] + backbone.config.pad_token_id + 1}
        states = backbone(**batch).last_hidden_state
        return self.encoder.at_mask(states, batch["input_ids"])
