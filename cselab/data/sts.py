"""Semantic textual similarity: sentence pairs with gold ratings, official counts checked."""

import hashlib
import math
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from cselab.data.sources import Source, data_folder, embedded_dir, from_hub, hub_allowed, read_lines
from cselab.errors import DataError, suggest

STS7 = ("STS12", "STS13", "STS14", "STS15", "STS16", "STSBenchmark", "SICK-R")
"""The seven English tasks of the papers' tables, in their order."""

_STEM = {"STSBenchmark": "stsb", "SICK-R": "sickr", **{f"STS{year}": f"sts{year}" for year in range(12, 17)}}
_COUNTS = {
    ("STS12", "test"): 3108, ("STS13", "test"): 1500, ("STS14", "test"): 3750, ("STS15", "test"): 3000,
    ("STS16", "test"): 1186, ("STSBenchmark", "train"): 5749, ("STSBenchmark", "dev"): 1500,
    ("STSBenchmark", "test"): 1379, ("SICK-R", "train"): 4500, ("SICK-R", "dev"): 500, ("SICK-R", "test"): 4927,
}  # fmt: skip
_HUB = {
    "STSBenchmark": "mteb/stsbenchmark-sts", "SICK-R": "mteb/sickr-sts",
    **{f"STS{year}": f"mteb/sts{year}-sts" for year in range(12, 17)},
}  # fmt: skip


@dataclass(frozen=True)
class StsData:
    """Pairs of one task and split. `scores` are gold ratings 0..5 (SICK-R 1..5); `subsets` name each pair's part."""

    task: str
    split: str
    sentences1: list[str]
    sentences2: list[str]
    scores: np.ndarray
    subsets: list[str]
    source: Source

    def __len__(self) -> int:
        return len(self.scores)

    @property
    def fingerprint(self) -> str:
        """Twelve hex digits over texts and ratings: two results with the same one were scored on the same pairs."""
        digest = hashlib.sha256(self.scores.tobytes())
        for text in (*self.sentences1, *self.sentences2):
            digest.update(text.encode() + b"\n")
        return digest.hexdigest()[:12]


def load_sts(
    task: str, split: str = "test", *, folder: str | Path | None = None, text: str = "raw", hub: bool = False
) -> StsData:
    """Pairs of `task`: one of STS7, or "World" (the generated one).

    split: "test"; also "train" and "dev" of STSBenchmark and SICK-R, "all" of SICK-R (9,927 pairs, as mteb has it; the
        papers use the 4,927 of "test"), "dev" of World.
    text: "raw", or "senteval" for STS12 to STS16 as SentEval tokenised and lower-cased them.

    Raises DataError for an unknown task or split, a file that is missing, damaged or malformed, or a wrong count.
    """
    if task == "World":
        return _world(split)
    if task not in _STEM:
        raise DataError(f"unknown task {task!r}; {suggest(task, [*_STEM, 'World'])}")
    if (task, split) == ("SICK-R", "all"):
        parts = [load_sts(task, part, folder=folder, hub=hub) for part in ("train", "dev", "test")]
        return _joined(task, split, parts)
    if (task, split) not in _COUNTS:
        splits = [s for t, s in _COUNTS if t == task] + ["all"] * (task == "SICK-R")
        raise DataError(f"{task} has no split {split!r}; it has {', '.join(splits)}")
    if text not in ("raw", "senteval") or (text == "senteval" and not task.startswith("STS1")):
        raise DataError(f"no {text!r} text for {task}; 'raw' for every task, 'senteval' for STS12 to STS16")
    where = data_folder(folder)
    if where is not None:
        path = where / ("sts" if text == "raw" else "sts-senteval") / f"{_STEM[task]}-{split}.tsv.gz"
        rows, source = _read(path), Source("folder", str(path))
    elif hub_allowed(hub):
        rows, source = from_hub(task, lambda: _hub_rows(task, split)), Source("hub", _HUB[task])
    else:
        raise DataError(f"{task} does not ship with this project; set data_dir (or CSELAB_DATA), allow the hub, or use task 'World'")
    expected = _COUNTS[task, split]
    if len(rows[0]) != expected:
        raise DataError(f"{source} has {len(rows[0])} pairs, {task} {split} officially has {expected}; replace the file")
    return _pack(task, split, rows, source)


def _read(path: Path) -> tuple[list, list, list, list]:
    """Columns of a TSV with a header. No quoting: quote marks are part of the text."""
    lines = read_lines(path)
    header = next(lines, "").split("\t")
    for column in ("sentence1", "sentence2", "score"):
        if column not in header:
            raise DataError(f"{path}: no column {column!r} in its header {header}; expected sentence1, sentence2, score and perhaps subset")
    first, second, score = (header.index(column) for column in ("sentence1", "sentence2", "score"))
    subset = header.index("subset") if "subset" in header else None
    columns: tuple[list, list, list, list] = ([], [], [], [])
    for number, line in enumerate(lines, 2):
        cells = line.split("\t")
        if len(cells) != len(header):
            raise DataError(f"{path}, line {number}: {len(cells)} cells, the header has {len(header)}; a tab in a text must become a space")
        try:
            value = float(cells[score])
        except ValueError:
            value = math.nan
        if not 0 <= value <= 5:
            raise DataError(f"{path}, line {number}: score {cells[score]!r} is not a number from 0 to 5")
        for column, cell in zip(columns, (cells[first], cells[second], value, "" if subset is None else cells[subset]), strict=True):
            column.append(cell)
    return columns


def _hub_rows(task: str, split: str) -> tuple[list, list, list, list]:
    from datasets import load_dataset

    rows = load_dataset(_HUB[task], split={"dev": "validation"}.get(split, split))
    return list(rows["sentence1"]), list(rows["sentence2"]), list(rows["score"]), [""] * len(rows)


def _world(split: str) -> StsData:
    from cselab.data.world import sts_pairs

    if split not in ("dev", "test"):
        raise DataError(f"World has no split {split!r}; it has dev, test")
    pairs = sts_pairs(split)
    rows = ([p.sentence1 for p in pairs], [p.sentence2 for p in pairs], [p.score for p in pairs], [p.tag for p in pairs])
    return _pack("World", split, rows, Source("embedded", str(embedded_dir() / "world")))


def _pack(task: str, split: str, rows: tuple[list, list, list, list], source: Source) -> StsData:
    return StsData(task, split, rows[0], rows[1], np.asarray(rows[2], dtype=np.float64), rows[3], source)


def _joined(task: str, split: str, parts: list[StsData]) -> StsData:
    def flat(name: str) -> list:
        return [item for part in parts for item in getattr(part, name)]

    return _pack(task, split, tuple(flat(n) for n in ("sentences1", "sentences2", "scores", "subsets")), parts[-1].source)
