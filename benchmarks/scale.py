"""Work and disk of trainings at paper size, the table of outputs/reference/SCALE.md.

Run `python benchmarks/scale.py`. It only computes, from the shape of BERT-base and the schedules of
the profile `paper`.
"""

from typing import NamedTuple

import pandas
from transformers import BertConfig

from cselab.evaluation import inference_cost, twin_training_cost
from cselab.experiments import configure
from cselab.methods import Schedule
from cselab.models import cael_positions

FLOP_PER_SECOND = 150e12
"""Assumed (not measured) speed of a large GPU in bfloat16: a sixth of the peak of an H100."""
WEIGHTS = 109.5e6
"""Number of parameters of BERT-base."""


class Training(NamedTuple):
    """A kind of training: how many a seed, and the towers that are kept of each.

    gmacs: of one sentence in one pass.
    passes: forward and backward passes per sentence; a forward pass alone counts a third (the clean
        view of off-dropout).
    """

    count: int
    towers: int
    schedule: Schedule
    gmacs: float
    passes: float = 2

    @property
    def flop(self) -> float:
        """Floating-point operations of all steps; a backward pass is two forward passes."""
        sentences = self.schedule.steps * self.schedule.batch_size
        return self.count * 3 * 2 * 1e9 * self.gmacs * self.passes * sentences


def trainings() -> dict[str, Training]:
    """The trainings of one seed of eight methods."""
    shape = BertConfig()

    def node(method: str):
        return configure(method, "paper").method

    tower, single, twin = node("sum").towers[0].schedule, node("simcse").schedule, node("tncse")
    student = node("jtcse_d").schedule
    one = inference_cost(shape, length=tower.max_length).with_attention
    length = twin.schedule.max_length
    two = inference_cost(shape, towers=2, length=length).with_attention
    every = shape.num_hidden_layers // node("jtcse").caels
    cael = cael_positions(shape.num_hidden_layers, every)
    crossed = twin_training_cost(shape, length=length)(cael, "parallel").with_attention
    return {
        "towers I and II": Training(2, 1, tower, one),
        "four more towers (EDFSE)": Training(4, 1, tower, one),
        "SimCSE": Training(1, 1, single, one),
        "ImSimCSE": Training(1, 1, single, one, passes=2 + 1 / 3),
        "TNCSE": Training(1, 2, twin.schedule, two),
        "JTCSE (6 CAELs)": Training(1, 2, twin.schedule, crossed),
        "EDFSE D, JTCSE D": Training(2, 1, student, one),
    }


def main() -> None:
    rows = {
        name: {
            "trainings": training.count,
            "PFLOP": training.flop / 1e15,
            "GPU-hours": training.flop / FLOP_PER_SECOND / 3600,
            "GB kept": training.count * training.towers * 4 * WEIGHTS / 1e9,
        }
        for name, training in trainings().items()
    }
    table = pandas.DataFrame(rows).T
    table.loc["one seed of eight methods"] = table.sum()
    table.loc["fifty seeds"] = 50 * table.loc["one seed of eight methods"]
    print(table.round({"trainings": 0, "PFLOP": 0, "GPU-hours": 2, "GB kept": 2}).to_string())


if __name__ == "__main__":
    main()
