"""C-STS: similarity of two sentences under a condition, Deshpande et al. 2023.

https://arxiv.org/abs/2305.15093. The authors give the data out encrypted, with a password on
request, at https://github.com/princeton-nlp/c-sts, and ask not to share it otherwise: so it is
found in a data folder alone, not on the hub. A synthetic counterpart stands in for it.
"""

import csv
import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from cselab.data.sources import Source, data_folder, name_of, read_lines
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
    """Pairs of sentences with a condition each.

    Attributes:
        conditions: n strings.
        scores: Similarity under the condition, (n,) float64, 1..5; NaN where it is not public
            (test).
    """

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
    """Load conditional STS: the folder's, else synthetic.

    Deshpande et al. 2023, https://arxiv.org/abs/2305.15093. Which of them it is, `.task` ("C-STS"
    or "Synthetic C-STS") and `.source` say.

    Args:
        split: "train", "dev" (the authors' validation) or "test", whose ratings are not public. The
            synthetic pairs have "dev" and "test", both with ratings.
        folder: A data folder; it holds C-STS if it has `csts/` with the authors' files,
            csts_train.csv, csts_validation.csv and csts_test.csv, as they are.

    Returns:
        The pairs with their conditions.

    Raises:
        DataError: For an unknown split, a missing or malformed file, and a wrong number of rows.

    Examples:
        >>> from cselab.data import load_csts
        >>> data = load_csts("dev")  # where there is no C-STS
        >>> data.task, len(data), data.conditions[0]
        ('Synthetic C-STS', 600, 'the action')
    """
    split = name_of(split)
    if split not in COUNTS:
        raise DataError(f"C-STS has no split {split!r}; {suggest(split, COUNTS)}")
    where = data_folder(folder)
    if where and (where / "csts").is_dir():
        path = where / "csts" / f"csts_{FILES[split]}.csv"
        return _checked(_csv_rows(path), split, path, Source("folder", str(path)))
    return _synthetic(split)


def _csv_rows(path: Path) -> list[dict[str, str]]:
    reader = csv.DictReader((line + "\n" for line in read_lines(path)), strict=True)
    if missing := [name for name in COLUMNS if name not in (reader.fieldnames or [])]:
        raise DataError(
            f"{path}: no column {missing[0]!r}; its first line must name {', '.join(COLUMNS)}"
        )
    try:
        return list(reader)
    except csv.Error as error:
        raise DataError(
            f"{path}, line {reader.line_num + 1}: {error}; get the authors' file again"
        ) from None


def _checked(
    rows: Iterable[Mapping[str, Any]], split: str, where: str | Path, source: Source
) -> ConditionalData:
    """The data of the rows. Raises DataError for a bad label, and a wrong number of rows."""
    rows = list(rows)
    for number, row in enumerate(rows, 1):
        if any(row.get(name) is None for name in COLUMNS[:3]):
            raise DataError(
                f"{where}, row {number}: a cell is missing; expected {', '.join(COLUMNS)}"
            )
    scores = [_rating(row.get("label"), where, number) for number, row in enumerate(rows, 1)]
    if len(rows) != COUNTS[split]:
        raise DataError(
            f"{where} has {len(rows)} rows, C-STS {split} officially has {COUNTS[split]}; get the "
            "official file"
        )
    one, two, conditions = ([row[name] for row in rows] for name in COLUMNS[:3])
    return ConditionalData("C-STS", split, one, two, np.array(scores), None, source, conditions)


def _rating(label: Any, where: str | Path, number: int) -> float:
    """The rating of a row, NaN where it is hidden."""
    try:
        rating = HIDDEN if label in ("", None) else float(label)
    except (TypeError, ValueError):
        rating = float("nan")
    if rating == HIDDEN:
        return float("nan")
    if not 1 <= rating <= 5:
        raise DataError(
            f"{where}, row {number}: label {label!r} is not a number from 1 to 5, nor {HIDDEN} for "
            "a hidden one"
        )
    return rating


def _synthetic(split: str) -> ConditionalData:
    if split == "train":
        raise DataError(
            "synthetic C-STS has no split 'train'; valid: dev, test; or set data_dir to a folder "
            "with csts/csts_train.csv"
        )
    from cselab.data.synthetic.conditional import conditional_pairs

    pairs = conditional_pairs(split)
    one, two, conditions, slots = (
        [getattr(pair, name) for pair in pairs]
        for name in ("sentence1", "sentence2", "condition", "slot")
    )
    scores, source = np.array([pair.score for pair in pairs]), Source("embedded", "synthetic C-STS")
    return ConditionalData("Synthetic C-STS", split, one, two, scores, slots, source, conditions)
