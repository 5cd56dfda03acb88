"""SentEval's data on the hub: the archive that SimCSE's scripts evaluate on.

Encodings and columns are those of the toolkit (https://github.com/facebookresearch/SentEval).
"""

import functools
import itertools
import tarfile
from collections.abc import Iterator

from cselab.data.hub import hub_file
from cselab.errors import DataError

ARCHIVE = ("princeton-nlp/datasets-for-simcse", "senteval.tar")
SICK = {"train": "train", "dev": "trial", "test": "test_annotated"}
"""Names of SICK's splits."""
CLASSES = {
    "MR": ("rt-polarity.neg", "rt-polarity.pos"),
    "CR": ("custrev.neg", "custrev.pos"),
    "SUBJ": ("subj.subjective", "subj.objective"),
    "MPQA": ("mpqa.neg", "mpqa.pos"),
}
"""Files of the classes 0 and 1, a text a line."""
PARTS = {
    "SST2": {part: f"binary/sentiment-{part}" for part in ("train", "dev", "test")},
    "TREC": {"train": "TREC/train_5500.label", "test": "TREC/TREC_10.label"},
    "MRPC": {part: f"MRPC/msr_paraphrase_{part}.txt" for part in ("train", "test")},
}
"""Files of the other transfer tasks, by part."""
LATIN_1 = (*CLASSES, "TREC")
NAMES = {
    *(f"SICK/SICK_{split}.txt" for split in SICK.values()),
    *(f"{task}/{name}" for task, names in CLASSES.items() for name in names),
    *(name for parts in PARTS.values() for name in parts.values()),
}
"""All but those of the yearly tasks."""


@functools.cache
def _files() -> dict[str, bytes]:
    """Contents of files of the archive by the last two parts of their names."""
    archive, found = hub_file(*ARCHIVE), {}
    try:
        with tarfile.open(archive) as tar:
            for path in tar.getnames():
                name = "/".join(path.split("/")[-2:])
                if (name in NAMES or "-en-test/STS." in name) and (file := tar.extractfile(path)):
                    found[name] = file.read()
        return found
    except (tarfile.TarError, OSError, EOFError) as error:
        raise DataError(f"{archive} cannot be read ({error}); fetch it again") from None


def _lines(name: str) -> list[str]:
    """Lines of a file; DataError without it, or if it is of another encoding."""
    try:
        encoding = "latin-1" if name.split("/")[0] in LATIN_1 else "utf-8"
        lines = _files()[name].decode(encoding).replace("\r\n", "\n").split("\n")
    except (KeyError, UnicodeDecodeError) as error:
        raise _damaged(name, error) from None
    return lines if lines[-1] else lines[:-1]


def _damaged(name: str, error: Exception) -> DataError:
    return DataError(f"{'/'.join(ARCHIVE)} has no readable {name} ({error}); fetch it again")


def sick_pairs(split: str) -> list[tuple[str, str, float, str]]:
    """SICK's pairs of a split: two sentences, their rating, no subset."""
    name = f"SICK/SICK_{SICK[split]}.txt"
    lines = _lines(name)
    try:
        header, *rows = (line.split("\t") for line in lines if line.strip())
        one, two, score = map(header.index, ("sentence_A", "sentence_B", "relatedness_score"))
        return [(row[one], row[two], float(row[score]), "") for row in rows]
    except (ValueError, IndexError) as error:
        raise _damaged(name, error) from None


def sick_sentences() -> Iterator[str]:
    """The distinct sentences of SICK's training pairs."""
    pairs = sick_pairs("train")
    return iter(dict.fromkeys(itertools.chain.from_iterable(pair[:2] for pair in pairs)))


def sts_pairs(task: str) -> list[tuple[str, str, float, str]]:
    """Pairs of STS12 to STS16, with their subset; lines without a rating are no pairs."""
    start, rows = f"{task}-en-test/STS.input.", []
    for name in sorted(name for name in _files() if name.startswith(start)):
        scores = _lines(name.replace("STS.input.", "STS.gs."))
        subset = name.removeprefix(start).removesuffix(".txt").rpartition(".")[2]
        try:
            for line, score in zip(_lines(name), scores, strict=True):
                if score.strip():
                    one, two, *_ = line.split("\t")
                    rows.append((one, two, float(score), subset))
        except ValueError as error:
            raise _damaged(name, error) from None
    return rows


def transfer_rows(task: str) -> dict[str, list[tuple[str, ...]]]:
    """Rows of a transfer task by part ("": a task without parts): its text, or two, and label."""
    if task in CLASSES:
        files = enumerate(CLASSES[task])
        return {"": [(text, str(i)) for i, name in files for text in _lines(f"{task}/{name}")]}
    parts = {}
    for part, name in PARTS[task].items():
        try:
            parts[part] = [_row(task, line) for line in _lines(name)[task == "MRPC" :]]
        except (ValueError, IndexError) as error:
            raise _damaged(name, error) from None
    return parts


def _row(task: str, line: str) -> tuple[str, ...]:
    if task == "TREC":  # "DESC:manner How did …"
        label, _, rest = line.partition(":")
        return rest.split(" ", 1)[1], label
    cells = line.strip().split("\t")
    return (cells[3], cells[4], cells[0]) if task == "MRPC" else (cells[0], cells[1])
