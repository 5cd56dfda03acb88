"""Triplets from natural language inference: a premise, an entailed and a contradicted hypothesis.

Supervised SimCSE, https://arxiv.org/abs/2104.08821, section 4.
"""

import functools
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path

import datasets
import pyarrow as pa
from transformers import PreTrainedTokenizerBase

from cselab.data.corpus import Corpus, sample_corpus, write_arrow
from cselab.data.hub import hub_file
from cselab.data.sources import (
    Source,
    check_count,
    data_folder,
    find_file,
    parse_names,
    read_table,
    shipped_english,
)
from cselab.data.synthetic.sets import Triplet
from cselab.data.synthetic.sets import triplets as synthetic_triplets
from cselab.errors import DataError

COLUMNS = ("premise", "hypothesis", "label")
DEFAULT_FILES = (
    *("snli-dev", "snli-test", "mnli-dev-matched"),
    *("xnli-en-dev", "xnli-en-test", "mnli-train-10k"),
)
"""Small parts of SNLI and MultiNLI, on which SimCSE and BeLLM train. SICK is left out: SICK-R is a
test."""
SIMCSE = ("princeton-nlp/datasets-for-simcse", "nli_for_simcse.csv")
SIMCSE_COLUMNS, SIMCSE_ROWS = ("sent0", "sent1", "hard_neg"), 275_601
"""Columns and number of SimCSE's triplets of SNLI and MultiNLI."""
SYNTHETIC = Source("embedded", "synthetic NLI text")
SYNTHETIC_TRIPLETS = 20_000
"""Number of triplets that synthetic NLI text without a `limit` is made of."""


@functools.cache
def load_simcse_triplets(path: str | Path | None = None) -> list[Triplet]:
    """Load SimCSE's 275,601 supervised triplets from a CSV file; None: from the hub.

    https://arxiv.org/abs/2104.08821, section 4.

    Raises:
        DataError: For other columns or another number of rows, and for what the hub lacks.
    """
    path = Path(path) if path else hub_file(*SIMCSE)
    rows = read_table(path, SIMCSE_COLUMNS)
    triplets = [Triplet(*(row[name] for name in SIMCSE_COLUMNS)) for _, row in rows]
    check_count(path, len(triplets), SIMCSE_ROWS, "triplets")
    return triplets


def load_nli_triplets(
    names: str | Path | Sequence[str | Path], *, folder: str | Path | None = None
) -> list[Triplet]:
    """Load triplets from the files `nli/<name>.tsv.gz` of the data folder, taken together.

    `names`, such as DEFAULT_FILES, may also be paths. A premise that has both kinds gives one
    triplet: with its first entailed and its first contradicted hypothesis.

    Raises:
        DataError: For an unknown name, a malformed file, and files without a triplet.
    """
    names = parse_names(names)
    hypotheses: dict[str, dict[str, str]] = {}
    for premise, hypothesis, label in _labelled(names, folder):
        hypotheses.setdefault(premise, {}).setdefault(label, hypothesis)
    triplets = [
        Triplet(premise, by_label["entailment"], by_label["contradiction"])
        for premise, by_label in hypotheses.items()
        if {"entailment", "contradiction"} <= by_label.keys()
    ]
    if not triplets:
        raise DataError(
            f"no premise in {', '.join(names) or 'no files'} has both kinds of hypotheses"
        )
    return triplets


def load_nli_text(
    names: str | Path | Sequence[str | Path] = (),
    *,
    folder: str | Path | None = None,
    hub: bool = False,
    limit: int | None = None,
    seed: int = 0,
) -> Corpus:
    """Load the distinct premises and hypotheses of NLI, without their labels, as a corpus.

    The unlabelled NLI text of ImSimCSE (https://arxiv.org/abs/2305.13192, Table 4).

    Args:
        names: Files `nli/<name>.tsv.gz` of the data folder. Without names: SimCSE's triplets from
            the hub if `hub`; else the folder's parts of SNLI and MultiNLI; else synthetic triplets.
        folder: A data folder (data/README.md); None: the variable CSELAB_DATA.
        limit: Size of a random sample, as in `load_corpus`.
        seed: Seed of the sample, or of the synthetic triplets.

    Raises:
        DataError: As `load_nli_triplets`, and for a limit below 1.
    """
    root, names = data_folder(folder), parse_names(names)
    rows: Callable[[], Iterable[Sequence[str]]]
    if hub and not names:
        source, rows = Source("hub", "/".join(SIMCSE)), load_simcse_triplets
    elif names or root:
        files = names or DEFAULT_FILES
        source = Source("folder", f"NLI of {', '.join(files)} in {root or shipped_english()}")
        rows = partial(_pairs, files, root)
    else:
        source = SYNTHETIC
        rows = partial(_synthetic, limit or SYNTHETIC_TRIPLETS, seed)
    return sample_corpus(source, partial(_distinct, rows), limit=limit, seed=seed)


@functools.lru_cache(maxsize=2)
def _synthetic(count: int, seed: int) -> tuple[Triplet, ...]:
    """Generated once: a corpus is read several times."""
    return tuple(synthetic_triplets(count, seed))


def _pairs(names: Sequence[str], folder: Path | None) -> Iterator[Sequence[str]]:
    return (row[:2] for row in _labelled(names, folder))


def _distinct(rows: Callable[[], Iterable[Sequence[str]]]) -> Iterable[str]:
    """Each sentence once, where it first occurs; an empty one is none."""
    sentences = (sentence.strip() for row in rows() for sentence in row)
    return dict.fromkeys(sentence for sentence in sentences if sentence)


def _labelled(names: Sequence[str], folder: str | Path | None) -> Iterator[tuple[str, ...]]:
    """Premise, hypothesis and label of each row of the files."""
    for name in names:
        path = find_file(name, folder, "nli/*.tsv.gz", kind="NLI file")
        for _, row in read_table(path, COLUMNS):
            yield tuple(row[column] for column in COLUMNS)


def tokenize_triplets(
    triplets: Sequence[Triplet],
    tokenizer: PreTrainedTokenizerBase,
    path: str | Path,
    *,
    max_length: int,
    add_prompt: Callable[[Sequence[str]], list[str]] = list,
) -> datasets.Dataset:
    """Tokenise triplets into the Arrow file `path`, memory-mapped.

    The rows have `input_ids`, `input_ids_b` (entailed), `input_ids_c` (contradicted) and `length`,
    that of the longest of the three, in tokens. `add_prompt` puts sentences into a prompt, see
    `cselab.models.prompts`.
    """
    names = ("input_ids", "input_ids_b", "input_ids_c")
    schema = pa.schema([*((name, pa.list_(pa.int32())) for name in names), ("length", pa.int32())])

    def columns(chunk: list[Triplet]) -> list[list]:
        options = dict(truncation=True, max_length=max_length, return_attention_mask=False)
        sides = zip(*chunk, strict=True)
        ids = [tokenizer(add_prompt(side), **options)["input_ids"] for side in sides]
        return [*ids, [max(map(len, row)) for row in zip(*ids, strict=True)]]

    write_arrow(Path(path), schema, triplets, columns)
    return datasets.Dataset.from_file(str(path))
