"""DiffCSE (Chuang et al. 2022): a sentence's vector has to tell which of its words were replaced."""

from collections.abc import Sequence
from pathlib import Path

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from cselab.data.augment import mask
from cselab.methods.base import Batch, Ids, Vectors, register
from cselab.methods.context import StepContext
from cselab.methods.masked_lm import by_sentence, filled, load_masked_lm, token_mean
from cselab.methods.simcse import SimCSE
from cselab.models import SentenceEncoder, load_backbone, load_tokenizer
from cselab.settings import Settings


@register("diffcse")
class DiffCSE(SimCSE):
    """InfoNCE through a projector with batch norm, and 0.005 times replaced-token detection: a frozen masked LM fills 30 % of the words,
    and a second encoder, whose [CLS] embedding is the sentence's vector, says of each word whether it was replaced.

    Simplified: the generator is the backbone's own checkpoint, where the paper has a smaller model.
    """

    own_terms = text_terms = ("rtd",)
    default_terms = ("nce", "rtd:0.005")

    def __init__(self, encoder: SentenceEncoder, settings: Settings, generator: nn.Module, discriminator: nn.Module):
        super().__init__(encoder, settings)
        width = encoder.backbone.config.hidden_size
        first = [nn.Linear(width, width, bias=False), nn.BatchNorm1d(width), nn.ReLU()]
        self.head = nn.Sequential(*first, nn.Linear(width, width, bias=False), nn.BatchNorm1d(width, affine=False))
        self.generator, self.discriminator = generator.requires_grad_(False), discriminator
        self.replaced = nn.Linear(width, 1)

    @classmethod
    def build(cls, settings: Settings, towers: Sequence[str | Path]) -> "DiffCSE":
        backbone, discriminator = (load_backbone(towers[0], dropout=settings.dropout) for _ in range(2))
        encoder = SentenceEncoder(backbone, load_tokenizer(towers[0]), pooling=settings.pooling)
        return cls(encoder, settings, load_masked_lm(towers[0]), discriminator)

    def rows(self, batch: Batch) -> dict[str, Float[Tensor, "B d"]]:
        vectors = self.encoder(batch)
        return {"sentence": self.head(vectors), "raw": vectors}

    def forward(self, batch: Batch) -> Vectors:
        vectors = super().forward(batch)
        raw = vectors.pop("raw")[0]
        return {**vectors, "told": self.told(self.texts(batch), raw)} if "rtd" in self.terms else vectors

    def told(self, batch: Batch, vectors: Float[Tensor, "N d"]) -> Float[Tensor, "1 N 2"]:
        """Binary cross-entropy of each word, summed by sentence."""
        self.generator.eval()
        ids, seen = batch["input_ids"], batch["attention_mask"]
        edited = filled(self.generator, ids, seen, mask(batch, self.tokens)["input_ids"])
        embedded = self.discriminator.get_input_embeddings()(edited)
        embedded = torch.cat([vectors[:, None].to(embedded.dtype), embedded[:, 1:]], dim=1)
        states = self.discriminator(inputs_embeds=embedded, attention_mask=seen).last_hidden_state
        logits, counted = self.replaced(states)[..., 0].float(), seen.clone()
        counted[:, 0] = 0  # [CLS] is the vector
        losses = F.binary_cross_entropy_with_logits(logits, (edited != ids).float(), reduction="none")
        return by_sentence(losses, counted)

    def rtd(self, vectors: Vectors, context: StepContext, ids: Ids) -> Float[Tensor, ""]:
        """A mean over words."""
        return token_mean(vectors["told"])
