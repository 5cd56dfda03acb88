"""EDFSE: an ensemble of SimCSE towers, each on the round trips of another language."""

import zlib
from typing import Any

from pydantic import Field, model_validator

from cselab.methods.config import AnyMethod, MethodConfig, Names
from cselab.methods.differences import Difference
from cselab.methods.distillation import Distilled
from cselab.methods.registry import register
from cselab.methods.towers import twin_towers
from cselab.methods.training_free import Materials, TrainingFree
from cselab.models import Ensemble


@register("edfse")
class EDFSE(TrainingFree):
    """The sum of SimCSE towers, each trained on the text and its round trips through another pivot
    (in the tables of TNCSE, https://arxiv.org/abs/2503.12739, and JTCSE).

    The members of the first pivots are the twins' own towers, so that an ensemble and a twin of its
    first two share them.
    """

    class Config(MethodConfig):
        """The pivots, and the towers that the members are."""

        pivots: Names = Field(("fr", "ru", "nl", "zh", "de", "es"), min_length=1)
        """The paper has six encoders."""
        towers: tuple[AnyMethod, AnyMethod] = Field(default_factory=twin_towers)
        """The twins'; a member with another pivot is as the first of them."""
        seed: int = 42

        @model_validator(mode="after")
        def _members(self) -> "EDFSE.Config":
            if len(set(self.pivots)) < len(self.pivots):
                raise ValueError(f"pivots: {self.pivots} names one twice; name each once")
            if not all(getattr(tower, "round_trips", None) for tower in self.towers):
                raise ValueError("towers: an ensemble of pivots is of towers with round trips")
            return self

        @property
        def parts(self) -> tuple[MethodConfig, ...]:
            towers: tuple[Any, ...] = self.towers  # `_members` has seen their round trips
            known = {tower.round_trips.pivot: tower for tower in towers}
            return tuple(known.get(pivot) or self._another(pivot) for pivot in self.pivots)

        def _another(self, pivot: str) -> MethodConfig:
            seed = zlib.crc32(f"{pivot} {self.seed}".encode())
            first = self.towers[0].model_copy(update={"seed": seed})
            return first.changed({"round_trips.pivot": pivot})

    paper_row = "EDFSE"
    differences = (
        Difference(
            name="members of the ensemble",
            of="EDFSE",
            paper="six encoders, a pivot each; the twins use two pivots",
            released="no difference known",
            here="six in profile `paper`, four in `small`, three in `tiny` (setting `pivots`)",
        ),
        Difference(
            name="translator of the round trips",
            of="EDFSE, TNCSE, JTCSE",
            paper="Google Translate",
            released="no code",
            here="Marian (opus-mt) from the hub, one trained here, or an offline stand-in",
        ),
        Difference(
            name="unlabelled SICK-R in the training text",
            of="TNCSE, JTCSE",
            paper="used, split not stated; SICK-R is also a test (transductive)",
            released="the file is not released",
            here="left out unless named in `corpus`",
        ),
    )

    @classmethod
    def encoder(cls, config: Config, materials: Materials) -> Any:
        return Ensemble(materials.parts)


@register("edfse_d")
class EDFSEStudent(Distilled):
    """EDFSE D: one tower that learned the ensemble's vectors."""

    class Config(Distilled.Config):
        """A student of EDFSE."""

        teacher: AnyMethod = Field(default_factory=EDFSE.Config)

    paper_row = "EDFSE D"
