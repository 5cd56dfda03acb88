"""ArcCSE (Zhang et al. 2022): a margin on the positive's angle, and an order between a lightly and
a heavily masked sentence."""

from dataclasses import dataclass

import torch.nn.functional as F
from jaxtyping import Float
from pydantic import Field
from torch import Tensor

from cselab.data.augment import concatenate, mask_span
from cselab.losses.inputs import at_least_float32, check_shapes
from cselab.methods.base import Batch, SentenceOutputs
from cselab.methods.context import StepContext
from cselab.methods.registry import register
from cselab.methods.simcse import SimCSE
from cselab.methods.terms import TermConfig, Terms, term


def distance_hinge(
    anchor: Float[Tensor, "N d"],
    near: Float[Tensor, "N d"],
    far: Float[Tensor, "N d"],
    *,
    margin: float = 0.0,
) -> Float[Tensor, ""]:
    """Triplet hinge: `max(0, cos(anchor, far) - cos(anchor, near) + margin)`, a mean over rows.

    ArcCSE, https://aclanthology.org/2022.acl-long.336.

    Args:
        anchor: Vectors of N sentences, (N, d).
        near: Vectors of the lightly masked sentences, (N, d).
        far: Vectors of the heavily masked sentences, (N, d).
        margin: By how much the cosine with `near` must exceed that with `far`.

    Raises:
        DataError: For wrong shapes.

    Examples:
        >>> import torch
        >>> from cselab.methods.baselines.arccse import distance_hinge
        >>> x = torch.eye(4)
        >>> distance_hinge(x, near=x.roll(1, 0), far=x, margin=0.5).item()  # 1 - 0 + 0.5
        1.5
    """
    check_shapes("N d", anchor=anchor, near=near, far=far)
    anchor, near, far = (at_least_float32(rows) for rows in (anchor, near, far))
    difference = F.cosine_similarity(anchor, far) - F.cosine_similarity(anchor, near)
    return F.relu(difference + margin).mean()


@dataclass(frozen=True, kw_only=True)
class MaskedOutputs(SentenceOutputs):
    """Also the sentences lightly and heavily masked, (2, N, d)."""

    masked: Tensor


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
        outputs = super().forward(batch)
        if "masking" not in self.terms:
            return outputs
        first, config = self.texts(batch), self.terms["masking"]
        shares = (config.light, config.heavy)
        masked = concatenate(
            [mask_span(first, self.tokens, share) for share in shares], self.tokens
        )
        vectors = self.project(masked).unflatten(0, (2, -1))
        return MaskedOutputs(**outputs.tensors(), masked=vectors)

    @term(Masking, reads_text=True)
    def masking(self, outputs: MaskedOutputs, step: StepContext) -> Float[Tensor, ""]:
        """The sentence is nearer to what is less masked."""
        margin = self.terms["masking"].margin
        return distance_hinge(outputs.sentence[0], *outputs.masked, margin=margin)
