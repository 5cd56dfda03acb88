"""Unlabelled sentences, read lazily, and tokenised once into a memory-mapped Arrow file."""

import hashlib
import itertools
import os
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import datasets
import pyarrow as pa
from filelock import FileLock
from transformers import PreTrainedTokenizerBase

from cselab.data.sources import Source, data_folder, embedded_dir, from_hub, hub_allowed, read_lines
from cselab.errors import DataError, suggest

DEFAULT_FILES = ("wiki1m-piece", "wikipedia-2014")
"""Random Wikipedia sentences: what a data folder has nearest to the papers' one million."""
LONGEST_LINE = 1000
"""Words. A line longer than this is a document, and cutting it to one sentence's length would go unnoticed."""


@dataclass(frozen=True)
class Corpus:
    """Sentences to iterate over as often as needed. `fingerprint` names the text; `source` says where it came from."""

    source: Source
    fingerprint: str
    files: tuple[Path, ...] = ()
    limit: int | None = None
    _length: list[int] = field(default_factory=list, compare=False, repr=False)

    def __iter__(self) -> Iterator[str]:
        if not self.files:
            from cselab.data.world import sentences

            return sentences(self.limit)
        return itertools.islice(self._lines(), self.limit)

    def _lines(self) -> Iterator[str]:
        for path in self.files:
            for number, line in enumerate(read_lines(path), 1):
                words = line.split()
                if len(words) > LONGEST_LINE:
                    raise DataError(
                        f"{path}, line {number}: {len(words):,} words on one line; expected one sentence a line, split the text "
                        "into sentences"
                    )
                if words:
                    yield line

    def __len__(self) -> int:
        if not self._length:
            self._length.append(sum(1 for _ in self))
        return self._length[0]


def load_corpus(
    names: Sequence[str] | None = None,
    *,
    folder: str | Path | None = None,
    hub: bool = False,
    limit: int | None = None,
) -> Corpus:
    """Unlabelled sentences, one a line; empty lines are left out.

    names: stems of files in the data folder's corpus/ or corpus-large/, or paths of .txt or .txt.gz files, or "world". None:
        the folder's Wikipedia sentences, else Wiki1M from the hub, else the generated world.
    limit: at most so many sentences (the world needs one).

    Raises DataError for an unknown name, an unreadable file or an empty corpus.
    """
    where = data_folder(folder)
    if names is None:
        if where is not None:
            names = DEFAULT_FILES
        elif hub_allowed(hub):
            names = (from_hub("Wiki1M", _wiki1m),)
        else:
            names = ("world",)
    if tuple(names) == ("world",):
        limit = limit or 500_000
        return Corpus(Source("embedded", str(embedded_dir() / "world")), _hash([b"world", str(limit).encode()]), limit=limit)
    files = tuple(_find(name, where) for name in names)
    kind = "hub" if "huggingface" in str(files[0]) or "hub" in files[0].parts else "folder"
    corpus = Corpus(
        Source(kind, ", ".join(path.name for path in files)),
        _hash([*(_file_hash(path) for path in files), str(limit).encode()]),
        files,
        limit,
    )
    if next(iter(corpus), None) is None:
        raise DataError(f"{', '.join(map(str, files))}: no sentence in it; expected one sentence a line")
    return corpus


def tokenize_corpus(
    corpus: Corpus, tokenizer: PreTrainedTokenizerBase, *, max_length: int, cache_dir: str | Path
) -> datasets.Dataset:
    """Rows `input_ids`, `length` and `text_hash` (64 bits), tokenised once and memory-mapped from `cache_dir` ever after.

    The key is the text, the tokenizer's content and `max_length`, never a file name. Nothing half-written is left.
    """
    inside = tokenizer.backend_tokenizer.to_str().encode()
    key = _hash([corpus.fingerprint.encode(), inside, str(max_length).encode()])
    final = Path(cache_dir) / f"{key}.arrow"
    final.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(f"{final}.lock"):
        if not final.is_file():
            handle, work = tempfile.mkstemp(dir=final.parent, prefix=f".{key}-")
            os.close(handle)
            try:
                _write(corpus, tokenizer, max_length, Path(work))
                os.replace(work, final)
            finally:
                Path(work).unlink(missing_ok=True)
    return datasets.Dataset.from_file(str(final))


def _write(corpus: Corpus, tokenizer: PreTrainedTokenizerBase, max_length: int, path: Path) -> None:
    """In chunks, so that a million sentences need the memory of ten thousand."""
    schema = pa.schema([("input_ids", pa.list_(pa.int32())), ("length", pa.int32()), ("text_hash", pa.int64())])
    lines = iter(corpus)
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_stream(sink, schema) as writer:
        while chunk := list(itertools.islice(lines, 10_000)):
            ids = tokenizer(chunk, truncation=True, max_length=max_length, return_attention_mask=False)["input_ids"]
            hashes = [int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "big", signed=True) for text in chunk]
            columns = [pa.array(ids, schema.field(0).type), pa.array(map(len, ids), pa.int32()), pa.array(hashes, pa.int64())]
            writer.write_batch(pa.record_batch(columns, schema))


def _find(name: str, where: Path | None) -> Path:
    path = Path(name).expanduser()
    if path.suffix in (".txt", ".gz"):
        if not path.is_file():
            raise DataError(f"no corpus file {path}; expected a .txt or .txt.gz with one sentence a line")
        return path
    if where is None:
        raise DataError(f"corpus {name!r} is looked for in the data folder; set data_dir (or CSELAB_DATA), or give a path to a .txt file")
    found = {file.name.removesuffix(".txt.gz"): file for part in ("corpus", "corpus-large") for file in (where / part).glob("*.txt.gz")}
    if name not in found:
        raise DataError(f"no corpus {name!r} in {where}; {suggest(name, found)}")
    return found[name]


def _wiki1m() -> str:
    from huggingface_hub import hf_hub_download

    return hf_hub_download("princeton-nlp/datasets-for-simcse", "wiki1m_for_simcse.txt", repo_type="dataset")


def _file_hash(path: Path) -> bytes:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").digest()


def _hash(parts: list[bytes]) -> str:
    digest = hashlib.sha256()
    for part in parts:
        digest.update(len(part).to_bytes(8, "big") + part)
    return digest.hexdigest()[:16]
