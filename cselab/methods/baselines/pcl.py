"""PCL (Wu et al. 2022): a group of augmented positives, contrasted across peer networks."""

from dataclasses import dataclass

from jaxtyping import Float
from torch import Tensor, nn

from cselab.data.augment import VIEWS, concatenate
from cselab.losses import info_nce
from cselab.methods import Batch, SentenceOutputs, StepContext, Terms, register, term
from cselab.methods.simcse import SimCSE
from cselab.methods.terms import SHARED
from cselab.models import SentenceEncoder

GROUP = ("same", "shuffle", "repeat", "delete")


@dataclass(frozen=True, kw_only=True)
class PeerOutputs(SentenceOutputs):
    """Also each sentence and its group through both peers' heads, (1 + group, N, d) each; no
    `sentence` where no shared term reads it."""

    sentence: Tensor | None
    peer_0: Tensor
    peer_1: Tensor


@register("pcl")
class PCL(SimCSE):
    """A sentence through one peer's head finds each member of its group of augmented copies through
    the other peer's, and the other way round; InfoNCE each time, a mean over the group
    (https://arxiv.org/abs/2201.12093).

    Simplified: peers are two heads on one encoder, where the paper has two encoders.
    """

    class Config(SimCSE.Config):
        terms: Terms = {"peers": 1}

    paper_row = "PCL"
    own_views = GROUP

    def __init__(self, encoder: SentenceEncoder, config: Config):
        super().__init__(encoder, config)
        width = encoder.backbone.config.hidden_size
        heads = (nn.Sequential(nn.Linear(width, width), nn.Tanh()) for _ in range(2))
        self.peer = nn.ModuleList(heads)

    def forward(self, batch: Batch) -> SentenceOutputs:
        has_shared = self.terms.keys() & SHARED.keys()
        shared = super().forward(batch).tensors() if has_shared else {}
        if "peers" not in self.terms:
            return SentenceOutputs(**shared)
        first = self.texts(batch)
        group = concatenate([first, *(VIEWS[n](first, self.tokens) for n in GROUP)], self.tokens)
        vectors, size = self.encoder.embed(group), 1 + len(GROUP)
        one, two = (head(vectors).unflatten(0, (size, -1)) for head in self.peer)
        return PeerOutputs(**{"sentence": None, **shared}, peer_0=one, peer_1=two)

    @term(reads_text=True)
    def peers(self, outputs: PeerOutputs, step: StepContext) -> Float[Tensor, ""]:
        """The first row of a peer's vectors is the sentence itself."""
        one, two = outputs.peer_0, outputs.peer_1
        across = [(a[0], member) for a, b in ((one, two), (two, one)) for member in b[1:]]
        temperature = self.settings.temperature
        losses = [info_nce(a, b, temperature=temperature, ids=step.ids) for a, b in across]
        return sum(losses) / len(across)
