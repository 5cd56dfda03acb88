"""Prints how much memory training from a million sentences takes beyond the loaded model: one process, from text to steps."""

import json
import resource
import tempfile
from pathlib import Path

from cselab.data.corpus import load_corpus, tokenize_corpus
from cselab.data.sources import embedded_dir
from cselab.data.world import sentences
from cselab.methods import create
from cselab.models import load_tokenizer
from cselab.settings import Schedule, Settings
from cselab.training import fit

SENTENCES = 1_000_000
TINY = str(embedded_dir() / "backbones" / "tiny-bert")


def peak_mib() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


with tempfile.TemporaryDirectory() as folder:
    path = Path(folder) / "million.txt"
    with path.open("w") as file:  # the world again and again, numbered: a million different lines
        file.writelines(f"{line} {i}\n" for i, line in enumerate(sentences(SENTENCES, 3)))
    method = create("simcse", Settings.of("tiny"), [TINY])
    plan = Schedule(steps=4, batch_size=64, learning_rate=1e-5, max_length=32, eval_every=4)
    small = Path(folder) / "small.txt"
    small.write_text("\n".join(sentences(128, 1)))
    few = tokenize_corpus(load_corpus([str(small)]), load_tokenizer(TINY), max_length=32, cache_dir=folder)
    fit(method, few, plan, dev=lambda m: 0.0, seed=1)  # what a run takes whatever the text
    before = peak_mib()
    rows = tokenize_corpus(load_corpus([str(path)]), load_tokenizer(TINY), max_length=32, cache_dir=folder)
    assert len(rows) == SENTENCES
    fit(method, rows, plan, dev=lambda m: 0.0, seed=1)
    print(json.dumps({"mib": round(peak_mib() - before), "whole_process_mib": round(peak_mib())}))
