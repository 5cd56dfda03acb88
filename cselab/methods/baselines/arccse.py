"""ArcCSE (Zhang et al. 2022): an angular margin, and an order of masked sentences."""

from dataclasses import replace

import torch.nn.functional as F
from jaxtyping import Float
from pydantic import Field
from torch import Tensor

from cselab.data.augment import concatenate, mask_span
from cselab.losses.inputs import at_least_float32, check_shapes
from cselab.methods import Batch, SentenceOutputs, StepContext, TermConfig, Terms, register, term
from cselab.methods.simcse import SimCSE


def distance_hinge(
    anchor: Float[Tensor, "N d"],
    near: Float[Tensor, "N d"],
    far: Float[Tensor, "N d"],
    *,
    margin: float = 0.0,
) -> Float[Tensor, ""]:
    """Triplet hinge: `max(0, cos(anchor, far) - cos(anchor, near) + margin)`, a mean over rows
    (ArcCSE, https://aclanthology.org/2022.acl-long.336)."""
    check_shapes("N d", anchor=anchor, near=near, far=far)
    anchor, near, far = (at_least_float32(rows) for rows in (anchor, near, far))
    difference = F.cosine_similarity(anchor, far) - F.cosine_similarity(anchor, near)
    return F.relu(difference + margin).mean()


class Masking(TermConfig):
    """Shares of a sentence that are masked, and the hinge's margin."""

    weight: float = Field(0.1, ge=0)
    light: float = 0.2
    heavy: float = 0.4
    margin: float = 0.0


@register("arccse")
class ArcCSE(SimCSE):
    """ArcCon (the shared term "arc") and a triplet of one sentence, itself, a fifth of it masked,
    two fifths masked (https://aclanthology.org/2022.acl-long.336)."""

    class Config(SimCSE.Config):
        terms: Terms = {"arc": 1, "masking": 0.1}

    paper_row = "ArcCSE"

    def forward(self, batch: Batch) -> SentenceOutputs:
        """Add the sentences lightly and heavily masked, (2, N, d)."""
        outputs = super().forward(batch)
        if "masking" not in self.terms:
            return outputs
        first, config = self.texts(batch), self.terms["masking"]
        masked = [mask_span(first, self.tokens, share) for share in (config.light, config.heavy)]
        vectors = self.project(concatenate(masked, self.tokens))
        return replace(outputs, extra=vectors.unflatten(0, (2, -1)))

    @term(Masking, reads_text=True)
    def masking(self, outputs: SentenceOutputs, step: StepContext) -> Float[Tensor, ""]:
        """The sentence is nearer to what is less masked."""
        margin = self.terms["masking"].margin
        return distance_hinge(outputs.sentence[0], *outputs.extra, margin=margin)
