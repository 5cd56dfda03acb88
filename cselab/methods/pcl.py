"""PCL (Wu et al. 2022): a group of positives by several augmentations, contrasted across peer networks."""

from jaxtyping import Float
from torch import Tensor, nn

from cselab.data.augment import VIEWS, joined
from cselab.losses import info_nce
from cselab.methods.base import Batch, Ids, Vectors, register
from cselab.methods.context import StepContext
from cselab.methods.simcse import SimCSE
from cselab.methods.terms import SHARED
from cselab.models import SentenceEncoder
from cselab.settings import Settings

GROUP = ("same", "shuffle", "repeat", "delete")


@register("pcl")
class PCL(SimCSE):
    """A sentence through one peer's head finds each member of its group of augmented copies through the other peer's, and the other
    way round; InfoNCE each time, a mean over the group.

    Simplified: peers are two heads on one encoder, where the paper has two encoders.
    """

    own_terms = text_terms = ("peers",)
    default_terms = ("peers",)

    def __init__(self, encoder: SentenceEncoder, settings: Settings):
        super().__init__(encoder, settings)
        width = encoder.backbone.config.hidden_size
        self.peer = nn.ModuleList(nn.Sequential(nn.Linear(width, width), nn.Tanh()) for _ in range(2))

    def forward(self, batch: Batch) -> Vectors:
        shared = super().forward(batch) if self.terms.keys() & SHARED.keys() else {}
        if "peers" not in self.terms:
            return shared
        first = self.texts(batch)
        group = joined([first, *(VIEWS[name](first, self.tokens) for name in GROUP)], self.tokens)
        vectors = self.encoder(group)
        peers = {f"peer_{i}": head(vectors).unflatten(0, (1 + len(GROUP), -1)) for i, head in enumerate(self.peer)}
        return {**shared, **peers}

    def peers(self, vectors: Vectors, context: StepContext, ids: Ids) -> Float[Tensor, ""]:
        """The first row of a peer's vectors is the sentence itself."""
        one, two = vectors["peer_0"], vectors["peer_1"]
        across = [(one[0], member) for member in two[1:]] + [(two[0], member) for member in one[1:]]
        return sum(info_nce(a, b, temperature=self.settings.temperature, ids=ids) for a, b in across) / len(across)
