"""How data/english was made: `python -m cselab.study.english DATA_FOLDER data/english`.

The data folder (data/README.md) has the Wikipedia sentences, SNLI, CAD-NLI and STS17 in full. The
round trips take half an hour of one core; an interrupted command continues.
"""

import gzip
import random
import re
import shutil
import sys
from collections import defaultdict
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from cselab.data.corpus import load_corpus
from cselab.data.sources import read_table
from cselab.data.translation.bergamot import Bergamot
from cselab.data.translation.round_trip import RoundTrip

SENTENCES, WORDS = 20_000, range(5, 26)
"""Number of sentences, and their words: a training step of the default run takes under a second."""
PAIRS = 500
"""Pairs of SNLI for each label and split."""
SCORES = {"entailment": 5.0, "neutral": 2.5, "contradiction": 0.0}
STS17 = ("en-en", "es-es", "ar-ar", "en-ar", "es-en", "en-tr")
"""Pairs of languages in the release of SemEval 2017, CC BY-SA 4.0."""


def main(source: Path, target: Path) -> None:
    """Write all files."""
    for name in ("corpus", "sts", "sts-multilingual", "nli"):
        (target / name).mkdir(parents=True, exist_ok=True)
    for pair in STS17:
        file = f"sts-multilingual/sts17-{pair}-test.tsv.gz"
        shutil.copyfile(source / file, target / file)
    shutil.copyfile(source / "nli/cad-nli-train.tsv.gz", target / "nli/cad-nli-train.tsv.gz")
    for split in ("dev", "test"):
        _write_snli(source / f"nli/snli-{split}.tsv.gz", target / f"sts/snli-{split}.tsv.gz")
    text = [s for s in load_corpus("wikipedia-2014", folder=source) if len(s.split()) in WORDS]
    random.Random(0).shuffle(text)
    sentences = text[:SENTENCES]
    translator = Bergamot(anew=True)
    cache = Path("outputs/cache/round-trips") / translator.fingerprint
    trips = RoundTrip("pt", translator, cache=cache)(sentences)
    table = pa.table({"sentence": sentences, "pt": list(trips)})
    pq.write_table(table, target / "corpus/wikipedia-20k.parquet", compression="zstd")


def _write_snli(source: Path, target: Path) -> None:
    """`PAIRS` pairs of each label, of as many premises, in SNLI's order, untokenised."""
    by_premise = defaultdict(list)
    for number, row in read_table(source, ("premise", "hypothesis", "label")):
        by_premise[row["premise"]].append((number, row))
    draw = np.random.default_rng(0)
    premises = sorted(by_premise)
    chosen, left = [], dict.fromkeys(SCORES, PAIRS)
    for i in draw.permutation(len(premises)):
        rows = by_premise[premises[i]]
        number, row = rows[draw.integers(len(rows))]
        if left[row["label"]]:
            left[row["label"]] -= 1
            chosen.append((number, row))
    lines = ["sentence1\tsentence2\tscore"]
    for _, row in sorted(chosen, key=lambda item: item[0]):
        texts = [_untokenised(row[side]) for side in ("premise", "hypothesis")]
        lines.append("\t".join([*texts, str(SCORES[row["label"]])]))
    with open(target, "wb") as raw, gzip.GzipFile("", "wb", fileobj=raw, mtime=0) as file:
        file.write(("\n".join(lines) + "\n").encode())


def _untokenised(text: str) -> str:
    """Penn Treebank's tokens as plain text."""
    text = re.sub(r"`` ?| ?''", '"', text)
    text = re.sub(r" (n't|'\w+)\b", r"\1", text)
    text = re.sub(r" ([.,;:!?%)])", r"\1", text).replace("( ", "(")
    return text.strip()


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
