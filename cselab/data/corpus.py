"""Unlabelled sentences, read lazily, and tokenised once into a memory-mapped Arrow file."""

import errno
import functools
import hashlib
import itertools
import json
import logging
import os
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TypeVar

import datasets
import numpy as np
import pyarrow as pa
from filelock import FileLock
from transformers import PreTrainedTokenizerBase

from cselab.data.hub import hub_file
from cselab.data.sources import LAYOUT, Source, data_folder, read_lines
from cselab.errors import DataError, suggest

DEFAULT_FILES = ("wiki1m-piece", "wikipedia-2014")
"""Random Wikipedia sentences: what a data folder has nearest to the papers' one million."""
WIKI1M = ("princeton-nlp/datasets-for-simcse", "wiki1m_for_simcse.txt")
"""SimCSE's one million Wikipedia sentences, on the hub."""
WORLD_SENTENCES = 100_000
"""How many sentences the generated world has when nobody says."""
MAX_WORDS = 1000
"""A longer line is a document: cut to a sentence's length it would go unnoticed that most of the text is never read."""
OTHER_FILES = (".csv", ".tsv", ".json", ".jsonl", ".parquet", ".gz", ".zip")
"""Endings of files that are given for a text and are none."""
CHUNK = 10_000
"""Sentences tokenised at a time; what memory depends on."""

Item = TypeVar("Item")
logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Corpus:
    """Sentences to iterate over as often as needed; each pass reads them anew, none is kept (but those of the world).

    source: where they came from. fingerprint: sixteen hex digits of SHA-256 over the text, and the sample if it is one.
    """

    source: Source
    fingerprint: str
    _length: int = field(repr=False)
    _lines: Callable[[], Iterator[str]] = field(repr=False, compare=False)

    def __iter__(self) -> Iterator[str]:
        return self._lines()

    def __len__(self) -> int:
        return self._length


def load_corpus(
    names: str | Sequence[str] | None = None,
    *,
    folder: str | Path | None = None,
    hub: bool = False,
    limit: int | None = None,
    seed: int = 0,
) -> Corpus:
    """Unlabelled sentences, one a line; blank lines are left out. Reads the text once, to check and count it.

    names: stems of files in the folder's corpus/ or corpus-large/, or paths of .txt or .txt.gz files; the train split of one of its
        STS tasks, as "sickr-train": its sentences without their scores (TNCSE and JTCSE add SICK-R's); or "world" alone.
        None: the folder's Wikipedia sentences, else, with `hub`, Wiki1M from the hub, else the generated world.
    limit: a random sample of so many, in their order; a larger sample contains a smaller one. Of the world, so many are
        generated.
    seed: draws the sample, or the world's sentences.

    Raises DataError for an unknown name, an unreadable file, a line of more than 1,000 words, or an empty corpus.
    """
    if limit is not None and limit < 1:
        raise DataError(f"limit={limit} leaves no sentences; give a positive number, or None for all")
    source, lines = _locate((names,) if isinstance(names, str) else names, folder, hub, limit, seed)
    digest, count = hashlib.sha256(), 0
    for count, sentence in enumerate(lines(), 1):  # noqa: B007
        digest.update(sentence.encode() + b"\n")
    if not count:
        raise DataError(f"no sentence in {source.detail}; expected one sentence a line")
    if limit is not None and limit < count:
        kept = np.sort(np.random.default_rng(seed).permutation(count)[:limit])
        digest.update(f"{limit} of seed {seed}".encode())
        count, lines = limit, partial(_only, lines, kept)
    return Corpus(source, digest.hexdigest()[:16], count, lines)


def tokenize_corpus(
    corpus: Corpus, tokenizer: PreTrainedTokenizerBase, *, max_length: int, cache_dir: str | Path
) -> datasets.Dataset:
    """Rows `input_ids`, `length` and `text_hash`, tokenised once and memory-mapped from `cache_dir` ever after.

    text_hash: 64 bits, equal for equal texts, so that duplicates in a batch can be found.
    cache_dir: keyed on the text, the tokenizer's content and `max_length`, never on a file name. Several processes may
        ask at once. The log (level INFO) says whether tokens were reused.

    Raises DataError for a tokenizer that is not a fast one, and for a full disk; nothing half-written is left.
    """
    key = _key(corpus, tokenizer, max_length)
    final = Path(cache_dir) / f"{key}.arrow"
    try:
        final.parent.mkdir(parents=True, exist_ok=True)
        with FileLock(f"{final}.lock"):
            reused = final.is_file()
            if not reused:
                _write(corpus, tokenizer, max_length, final)
    except OSError as error:
        if error.errno != errno.ENOSPC:
            raise
        raise DataError(f"no space left on the disk of {final.parent}: free some, or set `outputs` elsewhere") from None
    logger.info(
        "%s: %d sentences %s %s", corpus.source, len(corpus), "reused from" if reused else "tokenised into", final
    )
    return datasets.Dataset.from_file(str(final))


def _key(corpus: Corpus, tokenizer: PreTrainedTokenizerBase, max_length: int) -> str:
    if not tokenizer.is_fast:
        raise DataError(f"{type(tokenizer).__name__} is not a fast tokenizer; use one that has a tokenizer.json")
    content = json.loads(tokenizer.backend_tokenizer.to_str())
    for state in ("truncation", "padding"):  # left behind by whichever call came last; here every call sets its own
        content.pop(state, None)
    key = [corpus.fingerprint, content, tokenizer.truncation_side, max_length]
    return hashlib.sha256(json.dumps(key, sort_keys=True).encode()).hexdigest()[:16]


def _write(corpus: Corpus, tokenizer: PreTrainedTokenizerBase, max_length: int, final: Path) -> None:
    schema = pa.schema([("input_ids", pa.list_(pa.int32())), ("length", pa.int32()), ("text_hash", pa.int64())])

    def columns(chunk: list[str]) -> list[list]:
        ids = tokenizer(chunk, truncation=True, max_length=max_length, return_attention_mask=False)["input_ids"]
        return [ids, [len(row) for row in ids], [_text_hash(text) for text in chunk]]

    write_arrow(final, schema, corpus, columns)


def write_arrow(
    final: Path, schema: pa.Schema, sentences: Iterable[Item], columns: Callable[[list[Item]], list[list]]
) -> None:
    """`columns(chunk)` of all sentences into one Arrow file: in chunks, so that a million sentences need the memory of ten
    thousand; under a temporary name until complete."""
    handle, name = tempfile.mkstemp(dir=final.parent, prefix=f".{final.stem}-")
    os.close(handle)
    try:
        lines = iter(sentences)
        with pa.OSFile(name, "wb") as sink, pa.ipc.new_stream(sink, schema) as writer:
            while chunk := list(itertools.islice(lines, CHUNK)):
                arrays = [pa.array(c, t) for c, t in zip(columns(chunk), schema.types, strict=True)]
                writer.write_batch(pa.record_batch(arrays, schema))
        os.replace(name, final)
    finally:
        Path(name).unlink(missing_ok=True)


def _text_hash(text: str) -> int:
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "little", signed=True)


def _world(n: int, seed: int) -> Iterator[str]:
    return iter(_world_sentences(n, seed))


@functools.lru_cache(maxsize=2)
def _world_sentences(n: int, seed: int) -> tuple[str, ...]:
    """Drawn once: every stage asks for them several times."""
    from cselab.data.world import sentences

    return tuple(sentences(n, seed))


def _locate(
    names: Sequence[str] | None, folder: str | Path | None, hub: bool, limit: int | None, seed: int
) -> tuple[Source, Callable[[], Iterator[str]]]:
    if names is None:
        where = data_folder(folder)
        if hub and not (where and set(DEFAULT_FILES) <= _in_folder(where).keys()):
            return Source("hub", "/".join(WIKI1M)), partial(_sentences, (hub_file(*WIKI1M),))
        names = DEFAULT_FILES if where else ("world",)
    if "world" in names:
        if len(names) > 1:
            raise DataError(f"the generated world is a corpus of its own, got {', '.join(names)}; name it alone")
        return Source("embedded", "generated world"), partial(_world, limit or WORLD_SENTENCES, seed)
    paths = tuple(_path(name, folder) for name in names)
    return Source("folder", ", ".join(map(str, paths))), partial(_sentences, paths)


def _path(name: str, folder: str | Path | None) -> Path:
    if name.endswith((".txt", ".txt.gz")):
        return Path(name).expanduser()
    folder_given = os.sep in name and Path(name).is_dir()
    if Path(name).suffix in OTHER_FILES or Path(name).is_file() or folder_given:
        raise DataError(f"{name} is no text of one sentence a line; save its sentences as a .txt or .txt.gz file")
    where = data_folder(folder)
    if where is None:
        raise DataError(
            f"corpus {name!r} is looked for in the data folder; set data_dir or CSELAB_DATA ({LAYOUT}), "
            "give the path of a .txt or .txt.gz file, or use 'world'"
        )
    found = _in_folder(where)
    if name not in found:
        raise DataError(f"no corpus {name!r} in {where}; {suggest(name, [*found, 'world'])}")
    return found[name]


def _in_folder(where: Path) -> dict[str, Path]:
    """By name: texts, and pairs that no table of scores is about."""
    files = (
        path for part in ("corpus/*.txt.gz", "corpus-large/*.txt.gz", "sts/*-train.tsv.gz") for path in where.glob(part)
    )
    return {path.name.removesuffix(".gz").removesuffix(".txt").removesuffix(".tsv"): path for path in files}


def _sentences(paths: Sequence[Path]) -> Iterator[str]:
    for path in paths:
        for number, line in enumerate(_of_pairs(path) if path.name.endswith(".tsv.gz") else read_lines(path), 1):
            if len(line) > 2 * MAX_WORDS and (words := len(line.split())) > MAX_WORDS:
                raise DataError(
                    f"{path}, line {number}: {words:,} words; expected one sentence a line, so split the text"
                )
            if sentence := line.strip():
                yield sentence


def _of_pairs(path: Path) -> Iterator[str]:
    """Each sentence of a file of pairs once."""
    pairs = itertools.islice(read_lines(path), 1, None)
    return iter(dict.fromkeys(sentence for line in pairs for sentence in line.split("\t")[:2]))


def _only(lines: Callable[[], Iterator[str]], kept: np.ndarray) -> Iterator[str]:
    """The sentences at the sorted positions `kept`."""
    sentences, start = lines(), 0
    for position in kept.tolist():
        yield next(itertools.islice(sentences, position - start, None))
        start = position + 1
