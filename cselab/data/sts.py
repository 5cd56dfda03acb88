"""Semantic textual similarity: sentence pairs with gold ratings, official counts checked."""

import functools
import hashlib
import itertools
import math
import os
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np

from cselab.data import senteval_archive
from cselab.data.hub import hub_dataset
from cselab.data.sources import (
    LAYOUT,
    Source,
    check_count,
    data_folder,
    existing_path,
    parse_name,
    read_table,
    shipped_english,
    user_path,
)
from cselab.errors import DataError, suggest

YEARLY = ("STS12", "STS13", "STS14", "STS15", "STS16")
STS7 = (*YEARLY, "STSBenchmark", "SICK-R")
"""The seven English tasks of the papers' tables, in their order."""

STSB_LANGUAGES = ("de", "es", "fr", "it", "ja", "nl", "pl", "pt", "ru", "zh")
STS17_PAIRS = (
    *("ar-ar", "en-ar", "es-es", "es-en", "en-en", "en-tr"),
    *("en-de", "fr-en", "it-en", "nl-en", "es-en-wmt"),
)
_TRANSLATED = {f"STSBenchmark-{x}": f"stsb-{x}" for x in STSB_LANGUAGES}
_SEMEVAL17 = {f"STS17-{x}": f"sts17-{x}" for x in STS17_PAIRS}
MULTILINGUAL = (*_TRANSLATED, *_SEMEVAL17)
"""STS-B translated into ten languages, and the language pairs of SemEval 2017; files in
`sts-multilingual/` of a data folder."""

STEMS = {
    **_TRANSLATED,
    **_SEMEVAL17,
    **{task: task.lower() for task in YEARLY},
    "STSBenchmark": "stsb",
    "SICK-R": "sickr",
    "SNLI": "snli",
}
_COUNTS = {
    "STS12": {"test": 3108},
    "STS13": {"test": 1500},  # without the SMT subset, whose licence keeps it out of every copy
    "STS14": {"test": 3750},
    "STS15": {"test": 3000},
    "STS16": {"test": 1186},
    "STSBenchmark": {"train": 5749, "dev": 1500, "test": 1379},
    "SICK-R": {"train": 4500, "dev": 500, "test": 4927, "all": 9927},
    **{task: {"test": 1379} for task in _TRANSLATED},
    **{task: {"test": 250} for task in _SEMEVAL17},
    "SNLI": {"dev": 1500, "test": 1500},  # of data/english
}
"""Official numbers of pairs."""

SHIPPED = ("STS17-en-en", "SNLI", "Synthetic")
"""English tasks that ship with the project."""
NOT_ON_HUB = (("SNLI", "dev"), ("SNLI", "test"))

CAPTIONS = ("MSRvid", "images", "track5.en-en")
"""Subsets of captions: of videos (STS12), of pictures (STS14, STS15), and SNLI's (SemEval 2017, in
STSBenchmark)."""

Data = TypeVar("Data", bound="StsData")


@dataclass(frozen=True)
class StsData:
    r"""Pairs of one task and split.

    Attributes:
        split: "train", "dev", "test" or "all".
        scores: Gold ratings, (n,) float64, 0..5 (SICK-R 1..5), or 0..1 in a user's file.
        subsets: The part of the task that each pair comes from; None if it has no parts.

    Examples:
        >>> from cselab.data import load_sts
        >>> data = load_sts("Synthetic", "dev")
        >>> print(data.sentences1[0], data.sentences2[0], data.scores[0], sep="\n")
        On Sunday, three happy people followed four goats.
        Three cheerful humans followed two cows on Sunday.
        3.02
        >>> len(data), len(data.subsample(100))
        (1500, 100)
    """

    task: str
    split: str
    sentences1: list[str] = field(repr=False)
    sentences2: list[str] = field(repr=False)
    scores: np.ndarray = field(repr=False)
    subsets: list[str] | None = field(repr=False)
    source: Source

    def __len__(self) -> int:
        return len(self.scores)

    def subsample(self: Data, most: int) -> Data:
        """At most `most` pairs, evenly spread over the split, in their order."""
        kept = np.linspace(0, len(self) - 1, min(most, len(self)))
        return self.rows(np.unique(kept.round().astype(int)))

    def rows(self: Data, kept: np.ndarray) -> Data:
        """The pairs with these row numbers."""
        one, two = ([side[i] for i in kept] for side in (self.sentences1, self.sentences2))
        subsets = None if self.subsets is None else [self.subsets[i] for i in kept]
        return replace(
            self, sentences1=one, sentences2=two, scores=self.scores[kept], subsets=subsets
        )

    @property
    def captions(self) -> np.ndarray:
        """Mask of the pairs that are captions, (n,) bool.

        Near-duplicates of captions are in every corpus of captions and in SNLI. All False for a
        copy without subsets.
        """
        if self.task == "SICK-R":
            return np.ones(len(self), dtype=bool)
        subsets = self.subsets or [""] * len(self)
        return np.array([subset.rpartition("/")[2] in CAPTIONS for subset in subsets])

    @property
    def same_meaning(self) -> np.ndarray:
        """Mask of the pairs rated above 4 of 5, or above 0.8 of 1, (n,) bool.

        SimCSE's positive pairs of alignment, https://arxiv.org/abs/2104.08821, section 2.2.
        """
        return self.scores > 0.8 * rating_scale(self.scores)

    @property
    def fingerprint(self) -> str:
        """Sixteen hex digits of SHA-256 over texts and ratings, equal for equal pairs."""
        digest = hashlib.sha256(self.scores.tobytes())
        for text in (*self.sentences1, *self.sentences2):
            digest.update(text.encode() + b"\n")
        return digest.hexdigest()[:16]


def rating_scale(ratings: Any) -> float:
    """The highest possible rating: 1 if none of `ratings`, (n,), is above it, else 5."""
    return 1.0 if len(ratings) and ratings.max() <= 1 else 5.0


def load_sts(
    task: str | Path,
    split: str = "test",
    *,
    folder: str | Path | None = None,
    text: str = "raw",
    hub: bool = False,
) -> StsData:
    """Load the sentence pairs of a task.

    Args:
        task: One of STS7 or MULTILINGUAL; "Synthetic", "SNLI" (entailment above neutral above
            contradiction) and the STS17 pairs of SemEval ship with the project; or the path of a
            .tsv or .csv file, or one of them with .gz, with the columns sentence1, sentence2, score
            [, subset]; scores are 0 to 5 or 0 to 1.
        split: "test"; also "train" and "dev" of STSBenchmark and SICK-R, "all" of SICK-R (its 9,927
            pairs, as in mteb; the papers use the 4,927 of "test"), "dev" of Synthetic and SNLI.
        folder: A data folder (data/README.md); None: the variable CSELAB_DATA.
        text: "raw", or "senteval" for STS12 to STS16 as SentEval tokenised and lower-cased them.
        hub: Fetch a task that the data folder lacks: mteb's copy, without subsets; of splits of
            SICK-R, and of text "senteval", the SentEval archive of SimCSE's authors, which the
            papers use.

    Raises:
        DataError: For an unknown task, split or text, a file that is missing, damaged or malformed,
            a wrong number of pairs, and a task that neither the hub nor its cache has.

    Examples:
        >>> from cselab.data import load_sts
        >>> data = load_sts("Synthetic", "dev")
        >>> len(data), float(data.scores.min()), float(data.scores.max())
        (1500, 0.0, 5.0)
    """
    task, split = parse_name(task), parse_name(split)
    if task == "Synthetic":
        return _synthetic(split)
    if task not in _COUNTS and (path := user_path(task) or existing_path(task)):
        return _user_pairs(path, split)
    if task not in _COUNTS:
        raise DataError(f"unknown task {task!r}; {suggest(task, [*_COUNTS, 'Synthetic'])}")
    if split not in _COUNTS[task]:
        raise DataError(f"{task} has no split {split!r}; {suggest(split, _COUNTS[task])}")
    if text != "raw" and (text != "senteval" or task not in YEARLY):
        raise DataError(f"{task} has no {text!r} text; use 'raw', or 'senteval' for STS12 to STS16")
    return _sts_data(task, split, *_find(task, split, text, data_folder(folder), hub))


def _user_pairs(path: Path, split: str) -> StsData:
    """Pairs of a user's file, in any number; the file is one split."""
    columns = _read(path)
    if len(columns.scores) < 3:
        raise DataError(f"{path} has {len(columns.scores)} pairs; a correlation needs at least 3")
    if len(set(columns.scores)) < 2:
        raise DataError(
            f"{path}: all pairs have the score {columns.scores[0]:g}; a correlation needs several"
        )
    return _sts_data(path.name.split(".")[0], split, columns, Source("folder", str(path)))


class _Columns(NamedTuple):
    sentences1: list[str]
    sentences2: list[str]
    scores: list[float]
    subsets: list[str]


def _columns(rows: Sequence[tuple[str, str, float, str]]) -> _Columns:
    return _Columns(*map(list, zip(*rows, strict=True))) if rows else _Columns([], [], [], [])


def _find(
    task: str, split: str, text: str, root: Path | None, hub: bool
) -> tuple[_Columns, Source]:
    """Read the folder if it has the files, else what ships, else the hub; DataError without any."""
    parts = ("train", "dev", "test") if split == "all" else (split,)
    multilingual = task in MULTILINGUAL
    place = "sts-multilingual" if multilingual else "sts" if text == "raw" else "sts-senteval"

    def files(folder: Path) -> dict[str, Path]:
        return {part: folder / place / f"{STEMS[task]}-{part}.tsv.gz" for part in parts}

    def has_files(folder: Path | None) -> bool:
        return folder is not None and all(map(os.path.isfile, files(folder).values()))

    ships = not has_files(root) and has_files(shipped_english())
    root = shipped_english() if ships else root
    on_hub = not multilingual and (task, split) not in NOT_ON_HUB
    if hub and on_hub and not has_files(root):
        if text == "senteval" or (task == "SICK-R" and split != "all"):
            name, sick = "/".join(senteval_archive.ARCHIVE), task == "SICK-R"
            fetched = _columns(
                senteval_archive.sick_pairs(split) if sick else senteval_archive.sts_pairs(task)
            )
        else:
            name = f"mteb/{'stsbenchmark' if task == 'STSBenchmark' else STEMS[task]}-sts"
            fetched = _fetch(name, {"dev": "validation", "all": "test"}.get(split, split))
        return _checked(fetched, task, split, name), Source("hub", name)
    if root is None:
        hint = "" if on_hub else " (the hub has no such copy)"
        raise DataError(
            f"no source for {task} {split}{hint}; set data_dir or CSELAB_DATA ({LAYOUT}), or use "
            f"one that ships: {', '.join(SHIPPED)}"
        )
    read = [_checked(_read(path), task, part, path) for part, path in files(root).items()]
    joined = _Columns(*(list(itertools.chain(*column)) for column in zip(*read, strict=True)))
    return joined, Source("embedded" if ships else "folder", str(root / place))


def _checked(columns: _Columns, task: str, split: str, path: str | Path) -> _Columns:
    check_count(path, len(columns.scores), _COUNTS[task][split], "pairs")
    return columns


def _read(path: Path) -> _Columns:
    """Columns of a table with a header."""
    columns = _Columns([], [], [], [])
    for number, row in read_table(path, ("sentence1", "sentence2", "score")):
        columns.sentences1.append(row["sentence1"])
        columns.sentences2.append(row["sentence2"])
        columns.scores.append(_score(row["score"], path, number))
        columns.subsets.append(row.get("subset", ""))
    return columns


def _score(cell: str, path: Path, number: int) -> float:
    try:
        score = float(cell)
    except ValueError:
        score = math.nan
    if not 0 <= score <= 5:
        raise DataError(
            f"{path}, line {number}: score {cell!r} is not a number from 0 to 5; correct the line"
        )
    return score


@functools.cache
def _fetch(name: str, split: str) -> _Columns:
    """Columns from the hub, read once: a training needs its dev split at every evaluation."""
    from datasets import disable_progress_bars, load_dataset

    disable_progress_bars()
    rows = load_dataset(str(hub_dataset(name)), split=split)
    return _Columns(rows["sentence1"][:], rows["sentence2"][:], rows["score"][:], [""] * len(rows))


def _synthetic(split: str) -> StsData:
    if split not in ("dev", "test"):
        raise DataError(f"Synthetic has no split {split!r}; valid: dev, test")
    from cselab.data.synthetic import sts_pairs

    return _sts_data(
        "Synthetic", split, _columns(sts_pairs(split)), Source("embedded", "synthetic STS")
    )


def _sts_data(task: str, split: str, columns: _Columns, source: Source) -> StsData:
    scores = np.asarray(columns.scores, dtype=np.float64)
    subsets = columns.subsets if any(columns.subsets) else None
    return StsData(task, split, columns.sentences1, columns.sentences2, scores, subsets, source)
