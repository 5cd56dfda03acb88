"""PromptBERT (Jiang et al. 2022): the two views are the [MASK] of two templates."""

import torch
from jaxtyping import Float
from pydantic import Field
from torch import Tensor

from cselab.data.augment import wrap_in_prompt
from cselab.methods import Batch, Folders, Method, Schedule, SentenceOutputs, Terms, register
from cselab.methods.nodes import BackboneConfig, TwoViews
from cselab.methods.simcse import SimCSE
from cselab.models import SentenceEncoder, load_backbone, load_tokenizer

TEMPLATES = (
    'This sentence : "{sentence}" means [MASK] .',
    'This sentence of "{sentence}" means [MASK] .',
)


@register("promptbert")
class PromptBERT(Method):
    """InfoNCE between the [MASK] states under two templates, each less the state of its template
    alone (template denoising; https://arxiv.org/abs/2201.04337).

    The encoder keeps the first template as its prompt and pools [MASK]; at inference nothing is
    taken off, as in the paper.
    """

    class Config(BackboneConfig, TwoViews):
        temperature: float = Field(0.05, ge=1e-4, le=1e4)
        terms: Terms = {"nce": 1}
        schedule: Schedule = SimCSE.Config().schedule

    paper_row = "PromptBERT"

    @classmethod
    def build(cls, config: Config, folders: Folders) -> "PromptBERT":
        backbone = load_backbone(folders[0], dropout=config.dropout)
        tokenizer = load_tokenizer(folders[0])
        prompt = TEMPLATES[0].replace("[MASK]", tokenizer.mask_token)
        return cls(SentenceEncoder(backbone, tokenizer, pooling="mask", prompt=prompt), config)

    def rows(self, batch: Batch) -> SentenceOutputs:
        texts = [(self.texts(batch, view), text) for view, text in enumerate(TEMPLATES)]
        return SentenceOutputs(torch.cat([self.denoised(*pair) for pair in texts]))

    def clean(self, batch: Batch) -> SentenceOutputs:
        return SentenceOutputs(self.denoised(self.texts(batch), TEMPLATES[0]))

    def denoised(self, texts: Batch, template: str) -> Float[Tensor, "N d"]:
        """[MASK] of the texts in the template, less [MASK] of the template alone with its words at
        the same positions."""
        before, _ = self._parts(template)
        first = texts["input_ids"][:, :1]  # [CLS], before [SEP] a text without words
        end = torch.full_like(first, self.encoder.tokenizer.sep_token_id)
        ids = torch.cat([first, end], dim=1)
        empty = {"input_ids": ids, "attention_mask": torch.ones_like(ids)}
        alone = self.framed(empty, template)
        words = texts["attention_mask"].sum(1) - 2
        places = torch.arange(alone["input_ids"].shape[1], device=ids.device)
        config = self.encoder.backbone.config
        start = 0 if config.model_type == "bert" else config.pad_token_id + 1  # RoBERTa's first
        positions = start + places + words[:, None] * (places > len(before))
        filled = self._mask_state(self.framed(texts, template))
        return filled - self._mask_state({**alone, "position_ids": positions})

    def framed(self, texts: Batch, template: str = TEMPLATES[0]) -> Batch:
        """The texts in the template."""
        return wrap_in_prompt(texts, self.tokens, *self._parts(template))

    def embed(self, batch: Batch) -> Float[Tensor, "B d"]:
        return self.encoder.embed(self.framed(batch))

    def _parts(self, template: str) -> list[list[int]]:
        tokenizer = self.encoder.tokenizer
        parts = template.replace("[MASK]", tokenizer.mask_token).split("{sentence}")
        return [tokenizer(part, add_special_tokens=False)["input_ids"] for part in parts]

    def _mask_state(self, batch: Batch) -> Float[Tensor, "N d"]:
        states = self.encoder.backbone(**batch).last_hidden_state
        return self.encoder.at_mask(states, batch["input_ids"])
