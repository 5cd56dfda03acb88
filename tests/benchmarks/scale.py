"""The arithmetic of outputs/reference/SCALE.md: trainings of a seed at paper size, their work, hours of a GPU, and disk."""

import pandas
from transformers import BertConfig

from cselab.evaluation import inference_cost, twin_training_cost
from cselab.settings import Settings

SPEED = 150e12
"""Useful operations a second that a large GPU may reach on these shapes in bfloat16, a sixth of an H100's peak; assumed, not measured."""
WEIGHTS = 109.5e6
"""Of BERT-base."""


def main() -> None:
    s, shape = Settings.of("paper"), BertConfig()
    one = inference_cost(shape, length=s.stage1_max_length).with_attention
    two = inference_cost(shape, towers=2, length=s.stage2_max_length).with_attention
    cael = twin_training_cost(shape, length=s.stage2_max_length)(tuple(range(2, 13, 2)), "parallel").with_attention
    # name: trainings of a seed, towers kept of each, steps, GMACs of a sentence, passes of each over it (off-dropout has a third view)
    trainings = {
        "towers I and II": (2, 1, s.stage1_steps, one, 2), "four more towers (EDFSE)": (4, 1, s.stage1_steps, one, 2),
        "SimCSE": (1, 1, s.single().steps, one, 2), "ImSimCSE": (1, 1, s.single().steps, one, 2 + 1 / 3),
        "TNCSE": (1, 2, s.stage2_steps, two, 2), "JTCSE": (1, 2, s.stage2_steps, cael, 2),
        "EDFSE D, JTCSE D": (2, 1, s.distil_steps, one, 2),
    }  # fmt: skip
    rows = {}
    for name, (n, towers, steps, gmacs, passes) in trainings.items():
        work = n * 3 * 2 * 1e9 * gmacs * passes * steps * s.stage1_batch_size
        kept = n * towers * 4 * WEIGHTS / 1e9
        rows[name] = {"trainings": n, "PFLOP": work / 1e15, "GPU-hours": work / SPEED / 3600, "GB kept": kept}
    table = pandas.DataFrame(rows).T
    table.loc["one seed of eight methods"] = table.sum()
    table.loc["fifty seeds"] = 50 * table.loc["one seed of eight methods"]
    print(table.round({"trainings": 0, "PFLOP": 0, "GPU-hours": 2, "GB kept": 2}).to_string())


if __name__ == "__main__":
    main()
