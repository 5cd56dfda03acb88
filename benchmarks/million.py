"""Measure the memory that training from a million sentences needs beyond the loaded model.

Prints it as JSON; one process, from the text to training steps. Used by `bench.py --only f`.
"""

import json
import tempfile
from pathlib import Path

from cselab.data.corpus import load_corpus, tokenize_corpus
from cselab.data.sources import embedded_dir
from cselab.data.synthetic import sentences
from cselab.experiments import configure
from cselab.methods import Schedule, create
from cselab.models import load_tokenizer
from cselab.training import fit

SENTENCES = 1_000_000
TINY = str(embedded_dir() / "backbones" / "tiny-bert")


def peak_mib() -> float:
    """Peak resident memory of this program, on Linux. `getrusage` would count that of the process
    that started it too."""
    status = Path("/proc/self/status").read_text().splitlines()
    (peak,) = (line.split()[1] for line in status if line.startswith("VmHWM"))
    return int(peak) / 1024


with tempfile.TemporaryDirectory() as folder:
    path = Path(folder) / "million.txt"
    with path.open("w") as file:
        file.writelines(f"{line} {i}\n" for i, line in enumerate(sentences(SENTENCES, 3)))
    method = create(configure("simcse", "tiny").method, folders=[TINY])
    plan = Schedule(steps=4, batch_size=64, learning_rate=1e-5, max_length=32, eval_every=4)
    small = Path(folder) / "small.txt"
    small.write_text("\n".join(sentences(128, 1)))
    tokenizer, options = load_tokenizer(TINY), {"max_length": 32, "cache_dir": folder}
    few = tokenize_corpus(load_corpus([str(small)]), tokenizer, **options)
    fit(method, few, plan, dev=lambda m: 0.0, seed=1)  # the memory of any training
    before = peak_mib()
    rows = tokenize_corpus(load_corpus([str(path)]), tokenizer, **options)
    assert len(rows) == SENTENCES
    fit(method, rows, plan, dev=lambda m: 0.0, seed=1)
    print(json.dumps({"mib": round(peak_mib() - before), "whole_process_mib": round(peak_mib())}))
