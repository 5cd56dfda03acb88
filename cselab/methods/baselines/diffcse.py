"""DiffCSE (Chuang et al. 2022): a vector has to tell which words of its sentence were replaced."""

from dataclasses import replace
from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from cselab.data.augment import mask
from cselab.methods import Batch, Folders, SentenceOutputs, StepContext, Terms, register, term
from cselab.methods.baselines.masked_lm import (
    fill_masks,
    load_masked_lm,
    sums_by_sentence,
    token_mean,
)
from cselab.methods.simcse import SimCSE
from cselab.models import SentenceEncoder, load_backbone


@register("diffcse")
class DiffCSE(SimCSE):
    """InfoNCE through a projector with batch norm, and 0.005 times replaced-token detection
    (https://arxiv.org/abs/2204.10298): a frozen masked LM fills 30 % of the words, and a second
    encoder, whose [CLS] embedding is the sentence's vector, says of each word whether it was
    replaced.

    Simplified: the generator is the backbone's own checkpoint, where the paper has a smaller model.
    """

    class Config(SimCSE.Config):
        takes_head = False  # the projector is in its place
        terms: Terms = {"nce": 1, "rtd": 0.005}

    paper_row = "DiffCSE"

    def __init__(self, encoder: SentenceEncoder, config: Config, generator: nn.Module, judge: Any):
        super().__init__(encoder, config)
        width = encoder.backbone.config.hidden_size
        first = [nn.Linear(width, width, bias=False), nn.BatchNorm1d(width), nn.ReLU()]
        last = [nn.Linear(width, width, bias=False), nn.BatchNorm1d(width, affine=False)]
        self.head = nn.Sequential(*first, *last)
        self.generator, self.discriminator = generator.requires_grad_(False), judge
        self.replaced = nn.Linear(width, 1)

    @classmethod
    def build(cls, config: Config, folders: Folders) -> "DiffCSE":
        encoder = cls.load_encoder(config, folders[0])
        judge = load_backbone(folders[0], dropout=config.dropout)
        return cls(encoder, config, load_masked_lm(folders[0]), judge)

    def rows(self, batch: Batch) -> SentenceOutputs:
        """Vectors after the projector and before it."""
        vectors = self.encoder.embed(batch)
        return SentenceOutputs(self.head(vectors), extra=vectors)

    def forward(self, batch: Batch) -> SentenceOutputs:
        """Replace the vectors before the projector by the losses of `detection`."""
        outputs, losses = super().forward(batch), None
        if "rtd" in self.terms:
            losses = self.detection(self.texts(batch), outputs.extra[0])
        return replace(outputs, extra=losses)

    def detection(self, batch: Batch, vectors: Float[Tensor, "N d"]) -> Float[Tensor, "1 N 2"]:
        """Binary cross-entropy of each word, summed by sentence."""
        self.generator.eval()
        ids, seen = batch["input_ids"], batch["attention_mask"]
        edited = fill_masks(self.generator, ids, seen, mask(batch, self.tokens)["input_ids"])
        embedded = self.discriminator.get_input_embeddings()(edited)
        embedded = torch.cat([vectors[:, None].to(embedded.dtype), embedded[:, 1:]], dim=1)
        read = self.discriminator(inputs_embeds=embedded, attention_mask=seen)
        logits = self.replaced(read.last_hidden_state)[..., 0].float()
        counted = seen.clone()
        counted[:, 0] = 0  # [CLS] is the vector
        wrong = (edited != ids).float()
        losses = F.binary_cross_entropy_with_logits(logits, wrong, reduction="none")
        return sums_by_sentence(losses, counted)

    @term(reads_text=True)
    def rtd(self, outputs: SentenceOutputs, step: StepContext) -> Float[Tensor, ""]:
        """A mean over words."""
        return token_mean(outputs.extra)
