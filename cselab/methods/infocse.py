"""InfoCSE (Wu et al. 2022): a sentence's vector has to help an auxiliary network fill in its masked words."""

import copy
from collections.abc import Sequence
from pathlib import Path

import torch
from jaxtyping import Float
from torch import Tensor, nn

from cselab.data.augment import mask
from cselab.methods.base import Batch, Ids, Vectors, register
from cselab.methods.context import StepContext
from cselab.methods.masked_lm import by_sentence, cross_entropy_at, load_masked_lm, token_mean
from cselab.methods.simcse import SimCSE
from cselab.models import SentenceEncoder, load_backbone, load_tokenizer
from cselab.models.cross_attention import embed_tokens
from cselab.settings import Settings


@register("infocse")
class InfoCSE(SimCSE):
    """InfoNCE and 0.005 times a masked LM: the sentence's last [CLS] joins the masked text's states of a lower layer, which take no
    gradient, and two extra layers and the checkpoint's head reconstruct the words. Extra layers and head are left behind.

    Simplified: the extra layers start as copies of the backbone's last two, where the paper pretrains them first.
    """

    own_terms = text_terms = ("reconstruction",)
    default_terms = ("nce", "reconstruction:0.005")

    def __init__(self, encoder: SentenceEncoder, settings: Settings, language_model: nn.Module):
        super().__init__(encoder, settings)
        self.extra = copy.deepcopy(encoder.backbone.encoder.layer[-2:])
        self.words = language_model.cls if hasattr(language_model, "cls") else language_model.lm_head

    @classmethod
    def build(cls, settings: Settings, towers: Sequence[str | Path]) -> "InfoCSE":
        backbone = load_backbone(towers[0], dropout=settings.dropout)
        encoder = SentenceEncoder(backbone, load_tokenizer(towers[0]), pooling=settings.pooling)
        return cls(encoder, settings, load_masked_lm(towers[0]))

    def forward(self, batch: Batch) -> Vectors:
        vectors = super().forward(batch)
        if "reconstruction" in self.terms:
            vectors["told"] = self.told(self.texts(batch), vectors["sentence"][0])
        return vectors

    def told(self, batch: Batch, vectors: Float[Tensor, "N d"]) -> Float[Tensor, "1 N 2"]:
        """Cross-entropy of each masked word, summed by sentence."""
        ids, masked, backbone = batch["input_ids"], mask(batch, self.tokens), self.encoder.backbone
        with torch.no_grad():
            states = backbone(**masked, output_hidden_states=True).hidden_states[len(backbone.encoder.layer) // 2]
        states = torch.cat([vectors[:, None].to(states.dtype), states[:, 1:]], dim=1)
        allowed = embed_tokens(backbone, **masked)[1]
        for layer in self.extra:
            states = layer(states, allowed)
        hidden = masked["input_ids"] != ids
        return by_sentence(cross_entropy_at(self.words(states[hidden]), ids, hidden), hidden)

    def reconstruction(self, vectors: Vectors, context: StepContext, ids: Ids) -> Float[Tensor, ""]:
        """A mean over masked words."""
        return token_mean(vectors["told"])
