"""A decoder beyond STS, and the released mask: outputs/reference/decoders.json.

Run `python benchmarks/decoders.py`, once without CSELAB_DATA (synthetic text) and once with it
(real text, whose transfer tasks take most of the time). Trainings are those of profile tiny. What
the file has is not computed again, so that an interrupted run goes on.
"""

import json
from collections.abc import Callable

import torch

from cselab import open_lab
from cselab.data.synthetic import captions
from cselab.data.transfer import TRANSFER7
from cselab.evaluation import caption_retrieval, evaluate_transfer
from cselab.experiments import Lab
from cselab.models import SentenceEncoder, load_decoder
from cselab.models.encode import Encoder
from cselab.paths import project_path, replacing

PATH = project_path("outputs/reference") / "decoders.json"
MEASURES = ("TREC", "MRPC", "CR", "STS", "strict accuracy", "SST2", "MR", "SUBJ", "MPQA")
"""In their order: quick ones first."""
SEEDS = (1, 2, 3)
"""Transfer tasks have the first only."""
SCENES = 300
PHRASES = 10_000
"""SST2's training phrases that are used."""


def main() -> None:
    record = json.loads(PATH.read_text()) if PATH.is_file() else {"rows": []}
    record |= {"made by": "benchmarks/decoders.py", "torch": torch.__version__}
    record |= {"profile": "tiny", "scenes": SCENES, "SST2 phrases": PHRASES, "protocol": "senteval"}
    for measure in MEASURES:
        for seed in SEEDS:
            lab = open_lab("15_decoder_transfer", seed=seed, device="cpu")
            text = "real" if lab.data.has_real_data else "synthetic"
            if measure in TRANSFER7 and (text == "synthetic" or seed != SEEDS[0]):
                continue
            for label, encoder_of in builders(lab).items():
                row = row_of(record["rows"], {"text": text, "label": label, "seed": seed})
                if measure not in row["scores"]:
                    row["scores"][measure] = score(lab, label, encoder_of(), measure)
                    print(row, flush=True)
                    save(record)


def builders(lab: Lab) -> dict[str, Callable[[], Encoder]]:
    """Functions that make each row's encoder; the untrained decoder has no seed."""
    folder = lab.data.model_folder(lab.config("bellm").decoder)
    options = {"pooling": "last_token", "prompt": "representative"}
    untrained = {"untrained": lambda: SentenceEncoder(*load_decoder(folder), **options)}
    return {
        **(untrained if lab.seed == SEEDS[0] else {}),
        "BeLLM, padding masked": lambda: lab.train("bellm"),
        "BeLLM, padding unmasked": lambda: lab.train("bellm", padding="unmasked"),
        "SimCSE, supervised (encoder)": lambda: lab.train("simcse_supervised"),
    }


def score(lab: Lab, label: str, encoder: Encoder, measure: str) -> float:
    if measure == "STS":
        return lab.evaluate({label: encoder})[label].average
    if measure == "strict accuracy":
        return caption_retrieval(encoder.encode, list(captions(SCENES))).strict_accuracy
    tasks = [measure]
    return evaluate_transfer(encoder.encode, tasks, limit=PHRASES, protocol="senteval")[measure]


def row_of(rows: list[dict], key: dict) -> dict:
    """The row of a text, label and seed, added where there is none."""
    row = next((row for row in rows if key.items() <= row.items()), None)
    if row is None:
        row = {**key, "scores": {}}
        rows.append(row)
    return row


def save(record: dict) -> None:
    with replacing(PATH) as work:
        work.write_text(json.dumps(record, indent=1) + "\n")


if __name__ == "__main__":
    main()
