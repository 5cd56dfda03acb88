"""`+UC` of other encoders than JTCSE, and the students ("D") of the ensembles.

TNCSE compares TNCSE+UC with RankCSE+UC (https://arxiv.org/abs/2503.12739, Table 1).
"""

from typing import Any

from pydantic import Field, create_model

from cselab.methods import AnyMethod, Schedule, register
from cselab.methods.baselines.rankcse import RankCSE
from cselab.methods.distillation import Distilled
from cselab.methods.edfse import EDFSE
from cselab.methods.jtcse import JTCSE
from cselab.methods.tncse import TNCSE
from cselab.methods.uc import UC


def variant(
    base: Any, name: str, row: str, *, schedule: Schedule | None = None, **start: Any
) -> Any:
    """Register `base` as `name`, with another method in a field that it starts from (`start`).

    `row` is its row in the papers' tables.
    """
    ((part, method),) = start.items()
    fields: dict[str, Any] = {part: (AnyMethod, Field(default_factory=method.Config))}
    if schedule:
        fields["schedule"] = (Schedule, schedule)
    names = {
        "__module__": __name__,
        "__doc__": f"{row}: `{base.Config.name}` with {method.paper_row} as {part}.",
        "Config": create_model("Config", __base__=base.Config, __module__=__name__, **fields),
        "paper_row": row,
    }
    return register(name)(type(name, (base,), names))


RATE: Schedule = Distilled.Config().schedule.model_copy(
    update={"learning_rate": 1.5e-5}  # TNCSE supplement, Table I-1
)
TNCSE_UC = variant(UC, "tncse_uc", "TNCSE+UC", twin=TNCSE)
TNCSE_UC.released = {"weight": {"roberta": 0.75}}
RANKCSE_UC = variant(UC, "rankcse_uc", "RankCSE+UC", twin=RankCSE)

variant(Distilled, "edfse_d", "EDFSE D", teacher=EDFSE)
variant(Distilled, "tncse_d", "TNCSE D", teacher=TNCSE)
variant(Distilled, "jtcse_d", "JTCSE D", teacher=JTCSE)
variant(Distilled, "uc_d", "JTCSE+UC D", teacher=UC, schedule=RATE)
variant(Distilled, "tncse_uc_d", "TNCSE+UC D", teacher=TNCSE_UC, schedule=RATE)
variant(Distilled, "rankcse_uc_d", "RankCSE+UC D", teacher=RANKCSE_UC, schedule=RATE)
