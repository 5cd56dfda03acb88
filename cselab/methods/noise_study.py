"""Which noise helps? SimCSE with more or less of it on the positive or the negative pairs (ImSimCSE section 3.1, Table 1)."""

import torch
from jaxtyping import Float
from torch import Tensor

from cselab.losses import split_info_nce
from cselab.methods.base import Batch, Ids, Vectors, register
from cselab.methods.context import StepContext
from cselab.methods.simcse import SimCSE


@register("simcse_noise")
class NoiseStudy(SimCSE):
    """SimCSE in which the pairs `noise_on` ("positives" or "negatives") are of changed vectors, the others of the usual two views.

    `noise="more"` adds Gaussian noise of standard deviation `noise_std` to both views (released row "noise": to the second
    alone). `noise="less"` puts the mean of `noise_passes` dropout passes in each view's place; the gradient flows through all.
    """

    own_terms = text_terms = ("split",)
    default_terms = ("split",)

    def forward(self, batch: Batch) -> Vectors:
        vectors, s = super().forward(batch), self.settings
        if s.noise == "less":
            passes = [super(NoiseStudy, self).forward(batch)["sentence"] for _ in range(s.noise_passes)]
            return {**vectors, "changed": torch.stack(passes).mean(0)}
        added = s.noise_std * torch.randn_like(vectors["sentence"])
        if "noise" in s.released_rows:
            added[0] = 0
        return {**vectors, "changed": vectors["sentence"] + added}

    def split(self, vectors: Vectors, context: StepContext, ids: Ids) -> Float[Tensor, ""]:
        """Section 3.1: one pair of views for the positives, another for the negatives."""
        usual, changed = tuple(vectors["sentence"]), tuple(vectors["changed"])
        positive, negative = (changed, usual) if self.settings.noise_on == "positives" else (usual, changed)
        return split_info_nce(positive, negative, temperature=self.settings.temperature, ids=ids)
