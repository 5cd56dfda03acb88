"""C-STS: similarity of two sentences under a condition, Deshpande et al. 2023.

https://arxiv.org/abs/2305.15093. The authors give the data out encrypted, with a password on
request, at https://github.com/princeton-nlp/c-sts, and ask not to share it otherwise: so it is
found in a data folder alone, not on the hub. A synthetic counterpart stands in for it.
"""

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import datasets
import numpy as np
import pyarrow as pa
from transformers import PreTrainedTokenizerBase

from cselab.data.corpus import write_arrow
from cselab.data.sources import Source, check_count, data_folder, parse_name, read_table
from cselab.data.sts import StsData
from cselab.errors import DataError, suggest

COLUMNS = ("sentence1", "sentence2", "condition", "label")
COUNTS = {"train": 11_342, "dev": 2_834, "test": 4_732}
"""Official numbers of rows."""
FILES = {"train": "train", "dev": "validation", "test": "test"}
"""Splits by their names in the authors' files, csts_<name>.csv."""
HIDDEN = -1
"""The label of test rows: their ratings are with the authors' server."""


@dataclass(frozen=True)
class ConditionalData(StsData):
    """Pairs with a condition each; scores are 1..5 under it, NaN where not public (test)."""

    conditions: list[str]

    def rows(self, kept: np.ndarray) -> "ConditionalData":
        """The pairs with these row numbers."""
        return replace(super().rows(kept), conditions=[self.conditions[i] for i in kept])

    @property
    def fingerprint(self) -> str:
        """Sixteen hex digits of SHA-256 over texts, conditions and ratings."""
        texts = f"{super().fingerprint}\n" + "\n".join(self.conditions)
        return hashlib.sha256(texts.encode()).hexdigest()[:16]


def load_csts(split: str | Path = "dev", *, folder: str | Path | None = None) -> ConditionalData:
    """Load conditional STS: the folder's, else synthetic, as `.task` and `.source` say.

    Args:
        split: "train", "dev" (the authors' validation) or "test", whose ratings are not public
            (those of the synthetic test are).
        folder: A data folder; it holds C-STS if it has `csts/` with the authors' files,
            csts_train.csv, csts_validation.csv and csts_test.csv, as they are.

    Raises:
        DataError: For an unknown split, a missing or malformed file, and a wrong number of rows.

    Examples:
        >>> from cselab.data import load_csts
        >>> data = load_csts("dev")  # where there is no C-STS
        >>> data.task, len(data), data.conditions[0]
        ('Synthetic C-STS', 600, 'the action')
    """
    split = parse_name(split)
    if split not in COUNTS:
        raise DataError(f"C-STS has no split {split!r}; {suggest(split, COUNTS)}")
    root = data_folder(folder)
    if not (root and (root / "csts").is_dir()):
        return _synthetic(split)
    path = root / "csts" / f"csts_{FILES[split]}.csv"
    rows = list(read_table(path, COLUMNS))
    scores = [_rating(row["label"], path, number) for number, row in rows]
    check_count(path, len(rows), COUNTS[split])
    one, two, conditions = ([row[name] for _, row in rows] for name in COLUMNS[:3])
    source = Source("folder", str(path))
    return ConditionalData("C-STS", split, one, two, np.array(scores), None, source, conditions)


def _rating(label: str, path: Path, number: int) -> float:
    """The rating of a row, NaN where it is hidden."""
    try:
        rating = float(label or HIDDEN)
    except ValueError:
        rating = 0.0
    if rating == HIDDEN:
        return float("nan")
    if not 1 <= rating <= 5:
        raise DataError(
            f"{path}, line {number}: label {label!r} is not a number from 1 to 5, nor {HIDDEN}"
        )
    return rating


def _synthetic(split: str) -> ConditionalData:
    from cselab.data.synthetic.sets import conditional_pairs

    columns = map(list, zip(*conditional_pairs(split), strict=True))
    one, two, conditions, scores, slots = columns
    data = ("Synthetic C-STS", split, one, two, np.array(scores), slots)
    return ConditionalData(*data, Source("embedded", "synthetic C-STS"), conditions)


def training_rows(data: ConditionalData) -> tuple[ConditionalData, ConditionalData]:
    """Rows to train on, and the rows of every tenth pair of sentences, which pick the checkpoint.

    No pair is in both, under whatever condition.
    """
    pairs = list(zip(data.sentences1, data.sentences2, strict=True))
    held_out = {*list(dict.fromkeys(pairs))[::10]}
    is_held_out = np.array([pair in held_out for pair in pairs])
    return data.rows(np.flatnonzero(~is_held_out)), data.rows(np.flatnonzero(is_held_out))


def tokenize_csts(
    data: ConditionalData,
    tokenizer: PreTrainedTokenizerBase,
    path: str | Path,
    *,
    max_length: int,
    add_prompt: Callable[[Sequence[str], Sequence[str]], list[str]],
) -> datasets.Dataset:
    """Tokenise pairs under their conditions into the Arrow file `path`, memory-mapped.

    The rows have `input_ids`, `input_ids_b`, `length`, that of the longer, in tokens, and `target`,
    the rating, (1,). `add_prompt` puts sentences into a prompt with their conditions.
    """
    ids_type = pa.list_(pa.int32())
    names = {"input_ids": ids_type, "input_ids_b": ids_type, "length": pa.int32()}
    schema = pa.schema({**names, "target": pa.list_(pa.float32())})

    def columns(chunk: list[tuple]) -> list[list]:
        one, two, conditions, ratings = zip(*chunk, strict=True)
        options = dict(truncation=True, max_length=max_length, return_attention_mask=False)
        sides = (add_prompt(side, conditions) for side in (one, two))
        ids = [tokenizer(side, **options)["input_ids"] for side in sides]
        longest = [max(map(len, row)) for row in zip(*ids, strict=True)]
        return [*ids, longest, [[rating] for rating in ratings]]

    rows = zip(data.sentences1, data.sentences2, data.conditions, data.scores, strict=True)
    write_arrow(Path(path), schema, rows, columns)
    return datasets.Dataset.from_file(str(path))
