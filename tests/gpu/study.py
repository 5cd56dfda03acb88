"""SimCSE, the untrained sum of its towers, TNCSE and JTCSE on one backbone, seed by seed; a row a score.

    python tests/gpu/study.py --backbone tiny-bert --results study.jsonl 1 2 3 [-p name=value ...]

Seeds whose rows are already there are skipped. Checkpoints are picked on STS-B dev (the world's without a data folder).
"""

import argparse
import json
import tempfile
from pathlib import Path

import torch

from cselab import open_lab, stages

SCHEDULE = dict(
    sentences=100_000, stage1_steps=800, stage1_batch_size=128, stage1_eval_every=50, stage2_steps=400,
    stage2_batch_size=128, stage2_eval_every=50,
)  # fmt: skip


def encoders(lab):
    """Name and encoder, each made when it is asked for."""
    yield "SIF mean", stages.sif_mean(lab)
    yield "untrained (cls)", stages.backbone_encoder(lab, pooling="cls")
    yield "SimCSE, tower I", stages.tower(lab, "i").encoder
    yield "SimCSE, tower II", stages.tower(lab, "ii").encoder
    yield "SimCSE, I + II", stages.tower_sum(lab)
    for method in ("tncse", "jtcse"):
        yield method, stages.joint(lab, method).encoder


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("seeds", nargs="+", type=int)
    parser.add_argument("--backbone", default="tiny-bert")
    parser.add_argument("--results", type=Path, required=True)
    parser.add_argument("-p", action="append", default=[], help="a setting: name=value")
    given = parser.parse_args()
    done = (
        {json.loads(line)["seed"] for line in given.results.read_text().splitlines()}
        if given.results.exists()
        else set()
    )
    settings = {**SCHEDULE, **{name: json.loads(value) for name, value in (text.split("=", 1) for text in given.p)}}
    for seed in [seed for seed in given.seeds if seed not in done]:
        with tempfile.TemporaryDirectory() as outputs:
            lab = open_lab(
                "study", profile="small", backbone=given.backbone, seed=seed, outputs=outputs,
                bf16=torch.cuda.is_available(), **settings,
            )  # fmt: skip
            rows = [
                {"seed": seed, "method": name, "average": report.average, **report.scores}
                for name, encoder in encoders(lab)
                for report in [stages.score(lab, encoder.encode)]
            ]
        with given.results.open("a") as file:  # all of a seed or nothing
            file.writelines(json.dumps(row) + "\n" for row in rows)
        print(*(f"{row['seed']} {row['method']}: {row['average']:.2f}" for row in rows), sep="\n", flush=True)


if __name__ == "__main__":
    main()
