"""Unsupervised SimCSE: two dropout views of a sentence are positives, the batch is negatives."""

from pathlib import Path
from typing import Any, ClassVar, Literal

from jaxtyping import Float
from pydantic import Field
from torch import Tensor, nn

from cselab.data.settings import RoundTrips
from cselab.methods import Batch, Folders, Method, Schedule, SentenceOutputs, Terms, register
from cselab.methods.nodes import BackboneConfig, TrainedConfig, TwoViews, WithPooling
from cselab.models import SentenceEncoder, load_backbone, load_tokenizer


class Contrastive(BackboneConfig, WithPooling):
    """One tower that is trained by comparing sentences."""

    takes_head: ClassVar[bool] = True
    """Whether the method reads its vectors through `head`."""

    temperature: float = Field(0.05, ge=1e-4, le=1e4)
    """SimCSE Table D.1; released TNCSE and JTCSE have the same."""
    head: Literal["none", "mlp_train_only"] = "none"
    """SimCSE's is "mlp_train_only". TNCSE says of stage 1 that the state "does not go through the
    pooler layer", which speaks for "none"; the code of stage 1 is not released."""


def has_head(config: Any) -> bool:
    """Whether a tower trains with SimCSE's head."""
    return isinstance(config, Contrastive) and config.takes_head and config.head != "none"


def mlp_head(width: int) -> nn.Module:
    """SimCSE's head, which only the training has; released: `--mlp_only_train`."""
    return nn.Sequential(nn.Linear(width, width), nn.Tanh())


@register("simcse")
class SimCSE(Method):
    """InfoNCE over the two views (Gao et al. 2021, https://arxiv.org/abs/2104.08821, Eq. 4). Also
    stage 1 of TNCSE and JTCSE, one tower at a time.

    With `head="mlp_train_only"` a Linear + tanh stands on the pooled state in training only.
    """

    class Config(Contrastive, TwoViews):
        terms: Terms = {"nce": 1}
        schedule: Schedule = Schedule(
            batch_size=64,  # Table D.1; one epoch
            learning_rate=3e-5,  # Table D.1
            max_length=32,
            eval_every=125,
            max_grad_norm=1.0,  # the Trainer's default
        )

    paper_row = "SimCSE"

    def __init__(self, encoder: SentenceEncoder, config: TrainedConfig):
        super().__init__(encoder, config)
        width = encoder.backbone.config.hidden_size
        self.head = mlp_head(width) if has_head(config) else nn.Identity()

    @classmethod
    def build(cls, config: Any, folders: Folders) -> "SimCSE":
        return cls(cls.load_encoder(config, folders[0]), config)

    @classmethod
    def load_encoder(cls, config: Any, folder: str | Path) -> SentenceEncoder:
        """The tower before training, with the configuration's dropout and pooling."""
        pooler: Any = config.required_pooler if config.pooling == "pooler" else "if_present"
        backbone = load_backbone(folder, dropout=config.dropout, pooler=pooler)
        return SentenceEncoder(backbone, load_tokenizer(folder), pooling=config.pooling)

    def rows(self, batch: Batch) -> SentenceOutputs:
        return SentenceOutputs(self.project(batch))

    def project(self, batch: Batch) -> Float[Tensor, "B d"]:
        """Sentence vectors through the head, if there is one."""
        return self.head(self.encoder.embed(batch))


def tower(pivot: str, learning_rate: float) -> SimCSE.Config:
    """SimCSE on the text and its round trips through `pivot`."""
    schedule = Schedule(
        batch_size=64,  # TNCSE's table; one epoch of the sentences and their round trips
        learning_rate=learning_rate,
        max_length=32,  # SimCSE's
        eval_every=100,  # TNCSE supplement: STS-B dev every 100 steps
        max_grad_norm=1.0,
    )
    return SimCSE.Config(schedule=schedule, round_trips=RoundTrips(pivot=pivot))


def twin_towers() -> tuple[SimCSE.Config, SimCSE.Config]:
    """TNCSE's table of hyperparameters: BERT I en-fr-en, 1.5e-5; BERT II en-ru-en, 2e-5."""
    return tower("fr", 1.5e-5), tower("ru", 2e-5)
