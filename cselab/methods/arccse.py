"""ArcCSE (Zhang et al. 2022): a margin on the positive's angle, and an order between a lightly and a heavily masked sentence."""

from jaxtyping import Float
from torch import Tensor

from cselab.data.augment import joined, mask_span
from cselab.losses import distance_hinge
from cselab.methods.base import Batch, Ids, Vectors, register
from cselab.methods.context import StepContext
from cselab.methods.simcse import SimCSE


@register("arccse")
class ArcCSE(SimCSE):
    """ArcCon (the shared term "arc") and a triplet of one sentence, itself, a fifth of it masked, two fifths masked."""

    own_terms = text_terms = ("masking",)
    default_terms = ("arc", "masking:0.1")
    knobs = ("light:0.2", "heavy:0.4", "masking_margin:0.0")

    def forward(self, batch: Batch) -> Vectors:
        vectors = super().forward(batch)
        if "masking" in self.terms:
            first = self.texts(batch)
            masked = joined(
                [mask_span(first, self.tokens, self.knob[share]) for share in ("light", "heavy")], self.tokens
            )
            vectors["masked"] = self.rows(masked)["sentence"].unflatten(0, (2, -1))
        return vectors

    def masking(self, vectors: Vectors, context: StepContext, ids: Ids) -> Float[Tensor, ""]:
        """The sentence is nearer to what is less masked."""
        return distance_hinge(vectors["sentence"][0], *vectors["masked"], margin=self.knob["masking_margin"])
