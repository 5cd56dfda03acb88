"""ImSimCSE, published as SimCSE++ (Xu et al. 2023), and its study of dropout noise."""

from dataclasses import replace
from typing import Literal

import torch
from jaxtyping import Float
from pydantic import Field
from torch import Tensor

from cselab.losses import split_info_nce
from cselab.methods import Batch, SentenceOutputs, StepContext, TermConfig, Terms, register, term
from cselab.methods.simcse import SimCSE


@register("imsimcse")
class ImSimCSE(SimCSE):
    """`L = L_off-info + 0.1 L_DCL`: negatives without dropout noise, and a contrast between
    dimensions (https://arxiv.org/abs/2305.13192, Eq. 3 and 5). Alone, they are the terms
    ["off_info"] and ["nce", "dcl"].

    The clean pass has no dropout and draws no random number; the gradient flows through it.
    """

    class Config(SimCSE.Config):
        head: Literal["none", "mlp_train_only"] = "mlp_train_only"
        """ImSimCSE section 5.1; released: `--mlp_only_train` in each script."""
        terms: Terms = {"off_info": 1, "dcl": 0.1}

    paper_row = "ImSimCSE"
    released = {"terms.off_info.negative_weight": 1.0, "terms.off_info.positive_scale": 0.9}


class SplitInfoNCE(TermConfig):
    """The pairs whose vectors are changed, and the change."""

    noise: Literal["more", "less"] = "less"
    """ImSimCSE Table 1: +Noise adds Gaussian noise, -Noise averages passes."""
    noise_on: Literal["positives", "negatives"] = "negatives"
    """ImSimCSE Table 1."""
    noise_std: float = Field(0.1**0.5, gt=0)
    """ImSimCSE section 3.1: variance 0.1; released: 0.1."""
    noisy_views: Literal[1, 2] = 2
    """ImSimCSE section 3.1: both; released: the second alone."""
    noise_passes: int = Field(10, ge=1)
    """ImSimCSE section 3.1: K = 10."""


@register("simcse_noise")
class NoiseStudy(SimCSE):
    """SimCSE in which the pairs `noise_on` are of changed vectors, the others of the two plain
    views (SimCSE++, https://arxiv.org/abs/2305.13192, section 3.1, Table 1).

    `noise="more"` adds Gaussian noise of standard deviation `noise_std`. `noise="less"` puts the
    mean of `noise_passes` dropout passes in each view's place; the gradient flows through all.
    """

    class Config(SimCSE.Config):
        head: Literal["none", "mlp_train_only"] = "mlp_train_only"
        """ImSimCSE section 5.1."""
        terms: Terms = {"split": 1}

    released = {"terms.split.noise_std": 0.1, "terms.split.noisy_views": 1}

    def forward(self, batch: Batch) -> SentenceOutputs:
        """Add the two views with more or less noise, (2, N, d)."""
        forward = super().forward
        outputs, config = forward(batch), self.terms.get("split")
        if config is None:
            return outputs
        if config.noise == "less":
            passes = [forward(batch).sentence for _ in range(config.noise_passes)]
            return replace(outputs, extra=torch.stack(passes).mean(0))
        added = config.noise_std * torch.randn_like(outputs.sentence)
        added[: 2 - config.noisy_views] = 0
        return replace(outputs, extra=outputs.sentence + added)

    @term(SplitInfoNCE, reads_text=True)
    def split(self, outputs: SentenceOutputs, step: StepContext) -> Float[Tensor, ""]:
        """Section 3.1: one pair of views for the positives, another for the negatives."""
        plain, changed = tuple(outputs.sentence), tuple(outputs.extra)
        on_positives = self.terms["split"].noise_on == "positives"
        positive, negative = (changed, plain) if on_positives else (plain, changed)
        temperature = self.settings.temperature
        return split_info_nce(positive, negative, temperature=temperature, ids=step.ids)
