"""Triplets from natural language inference: a premise, a sentence it entails, one it contradicts (SimCSE, supervised)."""

import csv
import functools
from collections.abc import Sequence
from pathlib import Path

import datasets
import pyarrow as pa
from transformers import PreTrainedTokenizerBase

from cselab.data.corpus import write_arrow
from cselab.data.hub import hub_file
from cselab.data.sources import data_folder, read_lines
from cselab.data.world.sets import Triplet
from cselab.errors import DataError, suggest
from cselab.prompts import put_into

COLUMNS = ("premise", "hypothesis", "label")
DEFAULT_FILES = ("snli-dev", "snli-test", "mnli-dev-matched", "xnli-en-dev", "xnli-en-test", "mnli-train-10k")
"""SNLI and MultiNLI, as SimCSE and BeLLM train on; the folder has their small parts. SICK's stay out: SICK-R is a test."""
SIMCSE = ("princeton-nlp/datasets-for-simcse", "nli_for_simcse.csv")
SIMCSE_COLUMNS, SIMCSE_ROWS = ("sent0", "sent1", "hard_neg"), 275_601
"""SimCSE's triplets of SNLI and MultiNLI, and how many there are."""


@functools.cache
def load_simcse_triplets(path: str | Path | None = None) -> list[Triplet]:
    """SimCSE's 275,601 supervised triplets, from the CSV file at `path` or from the hub.

    Raises DataError for other columns or another number of rows, and where the hub does not have it.
    """
    path = Path(path) if path else hub_file(*SIMCSE)
    rows = csv.reader(line + "\n" for line in read_lines(path))
    try:
        header = tuple(next(rows, ()))
        if header != SIMCSE_COLUMNS:
            raise DataError(
                f"{path}: columns {', '.join(header) or 'none'}; "
                f"expected {', '.join(SIMCSE_COLUMNS)}; get the official file"
            )
        found = [Triplet(*row) for row in rows if len(row) == len(SIMCSE_COLUMNS)]
    except csv.Error as error:
        raise DataError(f"{path}, line {rows.line_num}: {error}; get the official file") from None
    if len(found) != SIMCSE_ROWS:
        raise DataError(f"{path} has {len(found):,} triplets, officially it has {SIMCSE_ROWS:,}; get the official file")
    return found


def load_nli_triplets(names: Sequence[str], *, folder: str | Path | None = None) -> list[Triplet]:
    """A triplet for each premise that has both, of the files `nli/<name>.tsv.gz` together: its first entailed and its first
    contradicted hypothesis.

    Raises DataError for no data folder, an unknown name, a malformed file, and files without a single triplet.
    """
    where = data_folder(folder)
    if where is None:
        raise DataError("NLI comes from a data folder; set data_dir or CSELAB_DATA to one with nli/<name>.tsv.gz")
    there = sorted(path.name.removesuffix(".tsv.gz") for path in (where / "nli").glob("*.tsv.gz"))
    hypotheses: dict[str, dict[str, str]] = {}
    for name in names:
        if name not in there:
            raise DataError(f"no NLI file {name!r} in {where / 'nli'}; {suggest(name, there)}")
        path = where / "nli" / f"{name}.tsv.gz"
        for number, line in enumerate(read_lines(path), 1):
            cells = line.split("\t")
            if len(cells) != len(COLUMNS) or (number == 1 and tuple(cells) != COLUMNS):
                raise DataError(
                    f"{path}, line {number}: expected {', '.join(COLUMNS)} with tabs between, got {line[:60]!r}"
                )
            premise, hypothesis, label = cells
            if number > 1:
                hypotheses.setdefault(premise, {}).setdefault(label, hypothesis)
    found = [
        Triplet(premise, by_label["entailment"], by_label["contradiction"])
        for premise, by_label in hypotheses.items()
        if {"entailment", "contradiction"} <= by_label.keys()
    ]
    if not found:
        raise DataError(
            f"no premise in {', '.join(names) or 'no files'} has both an entailed and a contradicted hypothesis"
        )
    return found


def tokenize_triplets(
    triplets: Sequence[Triplet],
    tokenizer: PreTrainedTokenizerBase,
    path: str | Path,
    *,
    max_length: int,
    prompt: str = "",
) -> datasets.Dataset:
    """Rows `input_ids`, `input_ids_b` (entailed), `input_ids_c` (contradicting) and `length`, the longest of the three.

    path: the Arrow file to write and to memory-map. prompt: what every sentence is put into, see `cselab.prompts`.
    """
    names = ("input_ids", "input_ids_b", "input_ids_c")
    schema = pa.schema([*((name, pa.list_(pa.int32())) for name in names), ("length", pa.int32())])

    def columns(chunk: list[Triplet]) -> list[list]:
        sides = zip(*((t.anchor, t.entailed, t.contradicted) for t in chunk), strict=True)
        ids = []
        for side in sides:
            text = put_into(prompt, side, tokenizer, max_length) if prompt else list(side)
            ids.append(
                tokenizer(text, truncation=True, max_length=max_length, return_attention_mask=False)["input_ids"]
            )
        return [*ids, [max(map(len, row)) for row in zip(*ids, strict=True)]]

    write_arrow(Path(path), schema, triplets, columns)
    return datasets.Dataset.from_file(str(path))
