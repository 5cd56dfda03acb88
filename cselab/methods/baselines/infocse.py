"""InfoCSE (Wu et al. 2022): a vector has to help an auxiliary network fill in masked words."""

import copy
from dataclasses import replace

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from cselab.data.augment import mask
from cselab.methods import Batch, Folders, SentenceOutputs, StepContext, Terms, register, term
from cselab.methods.baselines.masked_lm import load_masked_lm, sums_by_sentence, token_mean
from cselab.methods.simcse import SimCSE
from cselab.models import SentenceEncoder
from cselab.models.layers import embed_tokens


@register("infocse")
class InfoCSE(SimCSE):
    """InfoNCE and 0.005 times a masked LM (https://arxiv.org/abs/2210.06432): the sentence's last
    [CLS] joins the masked text's states of a lower layer, which take no gradient, and two extra
    layers and the checkpoint's head reconstruct the words. Extra layers and head are left behind.

    Simplified: the extra layers start as copies of the backbone's last two, where the paper
    pretrains them first.
    """

    class Config(SimCSE.Config):
        terms: Terms = {"nce": 1, "reconstruction": 0.005}

    paper_row = "InfoCSE"

    def __init__(self, encoder: SentenceEncoder, config: Config, language_model: nn.Module):
        super().__init__(encoder, config)
        self.extra = copy.deepcopy(encoder.backbone.encoder.layer[-2:])
        is_bert = hasattr(language_model, "cls")
        self.words = language_model.cls if is_bert else language_model.lm_head

    @classmethod
    def build(cls, config: Config, folders: Folders) -> "InfoCSE":
        return cls(cls.load_encoder(config, folders[0]), config, load_masked_lm(folders[0]))

    def forward(self, batch: Batch) -> SentenceOutputs:
        """Add the losses of `reconstructed`."""
        outputs, losses = super().forward(batch), None
        if "reconstruction" in self.terms:
            losses = self.reconstructed(self.texts(batch), outputs.sentence[0])
        return replace(outputs, extra=losses)

    def reconstructed(self, batch: Batch, vectors: Float[Tensor, "N d"]) -> Float[Tensor, "1 N 2"]:
        """Cross-entropy of each masked word, summed by sentence."""
        ids, masked = batch["input_ids"], mask(batch, self.tokens)
        backbone = self.encoder.backbone
        with torch.no_grad():
            states = backbone(**masked, output_hidden_states=True).hidden_states
            states = states[len(backbone.encoder.layer) // 2]
        states = torch.cat([vectors[:, None].to(states.dtype), states[:, 1:]], dim=1)
        allowed = embed_tokens(backbone, **masked)[1]
        for layer in self.extra:
            states = layer(states, allowed)
        hidden = masked["input_ids"] != ids
        logits = self.words(states[hidden]).float()
        losses = F.cross_entropy(logits, ids[hidden], reduction="none")
        by_token = torch.zeros(ids.shape, device=ids.device).masked_scatter(hidden, losses)
        return sums_by_sentence(by_token, hidden)

    @term(reads_text=True)
    def reconstruction(self, outputs: SentenceOutputs, step: StepContext) -> Float[Tensor, ""]:
        """A mean over masked words."""
        return token_mean(outputs.extra)
