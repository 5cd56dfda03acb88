"""Transfer scores by SentEval's protocol and by ours, outputs/reference/transfer-protocols.json.

Run `python benchmarks/protocols.py` with CSELAB_DATA set: hours. Rows of the grid real-transfer;
what is trained has several seeds. Both protocols score the same vectors, with their default seeds.
What the file has is not computed again.
"""

import json

import torch

from cselab.data.transfer import TRANSFER7
from cselab.evaluation import evaluate_transfer
from cselab.experiments import train
from cselab.experiments.grid import expand, read_grid
from cselab.paths import project_path, replacing

SEEDS = {
    "SIF mean": (1,),
    "untrained (cls)": (1,),
    "SimCSE": (1, 2),
    "JTCSE, parallel": (1, 2),
}
"""Seeds of each row; the first two depend on none."""
PROTOCOLS = ("standardised", "senteval")
PHRASES = 10_000
"""SST2's training phrases that are used, as in the grid's own measure."""


def main() -> None:
    folder = project_path("outputs/reference")
    path = folder / "transfer-protocols.json"
    record = json.loads(path.read_text()) if path.is_file() else {"rows": []}
    grid = read_grid(folder / "grids" / "real-transfer.toml")
    grid = {**grid, "seeds": [1, 2], "device": "cpu", "bf16": False}
    runs = {(run.label, run.seed): run for run in expand(grid)}
    record |= {
        "made by": "benchmarks/protocols.py",
        "torch": torch.__version__,
        "SST2 phrases": PHRASES,
        "average": "of the seven tasks, accuracy x100",
    }
    done = {(row["label"], row["seed"], row["protocol"]) for row in record["rows"]}
    for label, seeds in SEEDS.items():
        for seed in seeds:
            todo = [one for one in PROTOCOLS if (label, seed, one) not in done]
            if not todo:
                continue
            encode = remembering(train(runs[label, seed].config).encode)
            for protocol in todo:
                scores = evaluate_transfer(
                    encode, TRANSFER7, limit=PHRASES, protocol=protocol, seed=None
                )
                row = {"label": label, "seed": seed, "protocol": protocol, "scores": scores}
                record["rows"].append(row)
                print(row, flush=True)
                with replacing(path) as work:
                    work.write_text(json.dumps(record, indent=1) + "\n")


def remembering(encode):
    """The same encoder; a sentence is encoded once."""
    known = {}

    def encode_new(sentences):
        new = [sentence for sentence in dict.fromkeys(sentences) if sentence not in known]
        if new:
            known.update(zip(new, torch.as_tensor(encode(new)), strict=True))
        return torch.stack([known[sentence] for sentence in sentences])

    return encode_new


if __name__ == "__main__":
    main()
