"""EDFSE: an ensemble of SimCSE towers, each on the round trips of another language."""

import zlib
from typing import Any

from pydantic import Field, model_validator

from cselab.methods import AnyMethod, Materials, MethodConfig, TrainingFree, register
from cselab.methods.nodes import Names
from cselab.methods.simcse import twin_towers
from cselab.models import Ensemble


@register("edfse")
class EDFSE(TrainingFree):
    """The sum of SimCSE towers, each trained on the text and its round trips through another pivot
    (in the tables of TNCSE, https://arxiv.org/abs/2503.12739, and JTCSE).

    The members of the first pivots are the twins' own towers, so that an ensemble and a twin of its
    first two share them. Profile english has one pivot, and so one member.
    """

    class Config(MethodConfig):
        pivots: Names = Field(("fr", "ru", "nl", "zh", "de", "es"), min_length=1)
        """The paper has six encoders; fr, ru, nl and zh are the twins', de and es ours."""
        towers: tuple[AnyMethod, AnyMethod] = Field(default_factory=twin_towers)
        """The twins'; a member with another pivot is like the first of them."""
        seed: int = 42

        @model_validator(mode="after")
        def _check_members(self) -> "EDFSE.Config":
            if len(set(self.pivots)) < len(self.pivots):
                raise ValueError(f"pivots: {self.pivots} names one twice; name each once")
            if not self.towers[0].trips:
                raise ValueError("towers: an ensemble of pivots is of towers with round trips")
            return self

        @property
        def parts(self) -> tuple[MethodConfig, ...]:
            known = {tower.trips.pivot: tower for tower in self.towers if tower.trips}
            return tuple(known.get(pivot) or self._member(pivot) for pivot in self.pivots)

        def _member(self, pivot: str) -> MethodConfig:
            one, two = (getattr(tower, "seed", None) for tower in self.towers)
            seed = self.seed if one == two else zlib.crc32(f"{pivot} {self.seed}".encode())
            first = self.towers[0].model_copy(update={"seed": seed})
            return first.changed({"round_trips.pivot": pivot})

    paper_row = "EDFSE"

    @classmethod
    def encoder(cls, config: Config, materials: Materials) -> Any:
        return Ensemble(materials.parts)
