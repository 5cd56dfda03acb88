"""Unlabelled sentences: read lazily, tokenised once into a memory-mapped Arrow file."""

import functools
import hashlib
import itertools
import json
import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TypeVar

import datasets
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from filelock import FileLock
from transformers import PreTrainedTokenizerBase

from cselab.data import senteval_archive
from cselab.data.hub import hub_file
from cselab.data.sources import (
    TABLES,
    Source,
    data_folder,
    existing_path,
    file_suffix,
    files_by_name,
    find_file,
    parse_names,
    read_lines,
    read_table,
    shipped_english,
    shipped_sentences,
)
from cselab.errors import DataError
from cselab.paths import replacing
from cselab.seals import clear_access, damage, is_whole, seal

DEFAULT_FILES = ("wiki1m-piece", "wikipedia-2014")
"""Random Wikipedia sentences, the nearest to the papers' one million in a data folder."""
WIKI1M = ("princeton-nlp/datasets-for-simcse", "wiki1m_for_simcse.txt")
"""SimCSE's one million Wikipedia sentences, on the hub."""
SICKR = ("sickr", "sickr-train")
"""Names of SICK-R's training sentences on the hub."""
SYNTHETIC = Source("embedded", "synthetic text")
SYNTHETIC_SENTENCES = 100_000
"""Number of sentences of synthetic text without a `limit`."""
MAX_WORDS = 1000
"""A longer line is a document, not a sentence; truncation would silently drop most of it."""
FILES = (
    *("corpus/*.txt.gz", "corpus-large/*.txt.gz", "sts/*-train.tsv.gz"),
    "corpus/wikipedia-20k.parquet",  # `shipped_sentences`
)
"""Corpora of a data folder, STS train splits, on which no paper reports scores, and the text that
ships."""
CHUNK = 10_000
"""Sentences tokenised at a time, which bounds the memory."""

Item = TypeVar("Item")
Lines = Callable[[], Iterable[str]]
"""Reads a text from its beginning."""
logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Corpus:
    """Sentences that can be iterated over repeatedly; each pass reads them again from disk.

    Only synthetic sentences are kept in memory. `fingerprint` is sixteen hex digits of SHA-256 over
    the text, and over the sample if it is one.
    """

    source: Source
    fingerprint: str
    _length: int = field(repr=False)
    _lines: Callable[[], Iterable[str]] = field(repr=False, compare=False)

    def __iter__(self) -> Iterator[str]:
        return iter(self._lines())

    def __len__(self) -> int:
        return self._length


def load_corpus(
    names: str | Path | Sequence[str | Path] | None = None,
    *,
    folder: str | Path | None = None,
    hub: bool = False,
    limit: int | None = None,
    seed: int = 0,
) -> Corpus:
    """Load unlabelled sentences, one per line; reads the text once, to check and count it.

    Args:
        names: Stems of files in the folder's corpus/ or corpus-large/; paths of text files, also
            compressed with gzip; "sickr-train" or another STS train split of the folder, whose
            sentences are taken without their scores; with `hub`, "wiki1m" and, as TNCSE and JTCSE
            add it, "sickr", which the folder's files of these names replace; or "synthetic" alone.
            None: the folder's Wikipedia sentences; without them "wiki1m" if `hub`, else synthetic
            text.
        folder: A data folder (data/README.md); None: the variable CSELAB_DATA.
        limit: Size of a random sample, in the order of the text; a larger sample contains a smaller
            one. Of synthetic text, the number of sentences; None: 100,000.
        seed: Seed of the sample, or of the synthetic sentences.

    Raises:
        DataError: For an unknown name, an unreadable file, a line of more than 1,000 words, or an
            empty corpus.

    Examples:
        >>> from cselab.data import load_corpus
        >>> corpus = load_corpus("synthetic", limit=100)
        >>> len(corpus), next(iter(corpus))
        (100, 'A man is dancing on the farm.')
    """
    sample = partial(sample_corpus, limit=limit, seed=seed)
    if names is None:
        root = data_folder(folder)
        if hub and not (root and set(DEFAULT_FILES) <= files_by_name(root, *FILES).keys()):
            names = ("wiki1m",)
        else:
            names = DEFAULT_FILES if root else ("synthetic",)
    names = parse_names(names)
    if names == ("synthetic",):
        lines = partial(_synthetic, limit or SYNTHETIC_SENTENCES, seed)
        return sample(SYNTHETIC, lines)
    if "synthetic" in names:
        raise DataError(f"'synthetic' cannot be mixed, got {', '.join(names)}; name it alone")
    for name in names:
        if file_suffix(name) in TABLES:
            raise DataError(f"{name} is not a text but a table; save its sentences as a .txt file")
    texts = [_text(name, folder, hub) for name in names]
    kinds = {text.kind for text, _ in texts}
    kind = next(one for one in ("hub", "folder", "embedded") if one in kinds)
    source = Source(kind, ", ".join(text.detail for text, _ in texts))
    return sample(source, partial(_sentences, [read for _, read in texts]))


def _text(name: str, folder: str | Path | None, hub: bool) -> tuple[Source, Lines]:
    """Where the text of a name is, and what reads it."""
    root = data_folder(folder)
    is_here = existing_path(name) or (root and name in files_by_name(root, *FILES))
    if name == "wiki1m" and not is_here:
        if not hub:
            raise DataError("corpus: wiki1m is on the hub; set hub=True, or name another text")
        return Source("hub", "/".join(WIKI1M)), partial(_lines, hub_file(*WIKI1M))
    if name in SICKR and hub and not is_here:
        archive = "/".join(senteval_archive.ARCHIVE)
        return Source("hub", archive), senteval_archive.sick_sentences
    path = find_file(name, folder, *FILES, also=("synthetic",))
    if path.is_relative_to(shipped_english()):
        return Source("embedded", name), partial(_lines, path)
    return Source("folder", str(path)), partial(_lines, path)


def sample_corpus(
    source: Source, lines: Callable[[], Iterable[str]], *, limit: int | None = None, seed: int = 0
) -> Corpus:
    """The corpus of the sentences that `lines()` reads, or a random sample of `limit` of them."""
    if limit is not None and limit < 1:
        raise DataError(f"limit={limit} leaves no sentences; give 1 or more, or None for all")
    digest, count = hashlib.sha256(), 0
    for count, sentence in enumerate(lines(), 1):  # noqa: B007
        digest.update(sentence.encode() + b"\n")
    if not count:
        raise DataError(f"no sentence in {source.detail}; expected one sentence per line")
    if limit is not None and limit < count:
        kept = np.zeros(count, dtype=bool)
        kept[np.random.default_rng(seed).permutation(count)[:limit]] = True
        digest.update(f"{limit} of seed {seed}".encode())
        count, lines = limit, partial(_select, lines, kept)
    return Corpus(source, digest.hexdigest()[:16], count, lines)


def tokenize_corpus(
    corpus: Corpus, tokenizer: PreTrainedTokenizerBase, *, max_length: int, cache_dir: str | Path
) -> datasets.Dataset:
    """Tokenise a corpus into rows `input_ids`, `length` and `text_hash`, memory-mapped.

    `text_hash` has 64 bits and is equal for equal texts, which shows duplicates in a batch. Several
    processes may call this at once. The log (level INFO) says whether tokens were reused.

    Args:
        corpus: n sentences; so many rows are returned.
        tokenizer: A fast tokenizer, with a tokenizer.json.
        max_length: In tokens; longer sentences are truncated.
        cache_dir: The folder of the Arrow files. Their names depend on the text, on the tokenizer's
            content and on `max_length`, not on file names.

    Raises:
        DataError: For a tokenizer that is not fast, and for a full disk; leaves no incomplete file.
    """
    key = _key(corpus, tokenizer, max_length)
    final = Path(cache_dir) / f"{key}.arrow"
    reused = reuse_arrow(final, lambda: _write(corpus, tokenizer, max_length, final))
    verb = "reused from" if reused else "tokenised into"
    logger.info("%s: %d sentences %s %s", corpus.source, len(corpus), verb, final)
    return datasets.Dataset.from_file(str(final))


def _key(corpus: Corpus, tokenizer: PreTrainedTokenizerBase, max_length: int) -> str:
    if not tokenizer.is_fast:
        raise DataError(
            f"{type(tokenizer).__name__} is not a fast tokenizer; use one that has a tokenizer.json"
        )
    content = json.loads(tokenizer.backend_tokenizer.to_str())
    for state in ("truncation", "padding"):  # left by the last call; every call here sets them
        content.pop(state, None)
    key = [corpus.fingerprint, content, tokenizer.truncation_side, max_length]
    return hashlib.sha256(json.dumps(key, sort_keys=True).encode()).hexdigest()[:16]


def _write(
    corpus: Corpus, tokenizer: PreTrainedTokenizerBase, max_length: int, final: Path
) -> None:
    schema = pa.schema(
        [("input_ids", pa.list_(pa.int32())), ("length", pa.int32()), ("text_hash", pa.int64())]
    )

    def columns(chunk: list[str]) -> list[list]:
        options = dict(truncation=True, max_length=max_length, return_attention_mask=False)
        ids = tokenizer(chunk, **options)["input_ids"]
        return [ids, [len(row) for row in ids], [_text_hash(text) for text in chunk]]

    write_arrow(final, schema, corpus, columns)


def reuse_arrow(final: Path, write: Callable[[], None]) -> bool:
    """Whether `final` can be reused; else `write()` writes it, while other processes wait."""
    with clear_access(final.parent):
        if not damage(final):  # without the lock, which may be another user's
            return True
        final.parent.mkdir(parents=True, exist_ok=True)
        with FileLock(f"{final}.lock"):
            if is_whole(final):
                return True
            write()
            return False


def write_arrow(
    final: Path,
    schema: pa.Schema,
    sentences: Iterable[Item],
    columns: Callable[[list[Item]], list[list]],
) -> None:
    """Write `columns(chunk)` of all sentences into one sealed Arrow file, atomically."""
    lines = iter(sentences)
    with replacing(final) as work:
        with pa.OSFile(str(work), "wb") as sink, pa.ipc.new_stream(sink, schema) as writer:
            while chunk := list(itertools.islice(lines, CHUNK)):
                arrays = [pa.array(c, t) for c, t in zip(columns(chunk), schema.types, strict=True)]
                writer.write_batch(pa.record_batch(arrays, schema))
        seal(work)


def _text_hash(text: str) -> int:
    digest = hashlib.blake2b(text.encode(), digest_size=8).digest()
    return int.from_bytes(digest, "little", signed=True)


@functools.lru_cache(maxsize=2)
def _synthetic(n: int, seed: int) -> tuple[str, ...]:
    """Generated once: every cached step reads them several times."""
    from cselab.data.synthetic import sentences

    return tuple(sentences(n, seed))


def _lines(path: Path) -> Iterator[str]:
    """Lines of a file."""
    if path.name.endswith(".tsv.gz"):
        lines = _pair_sentences(path)
    elif path == shipped_sentences():
        lines = pq.read_table(path, columns=["sentence"])["sentence"].to_pylist()
    else:
        lines = read_lines(path)
    for number, line in enumerate(lines, 1):
        if len(line) > 2 * MAX_WORDS and (words := len(line.split())) > MAX_WORDS:
            raise DataError(
                f"{path}, line {number}: {words:,} words; expected one sentence, split the text"
            )
        yield line


def _sentences(texts: Sequence[Lines]) -> Iterator[str]:
    for lines in texts:
        for line in lines():
            if sentence := line.strip():
                yield sentence


def _pair_sentences(path: Path) -> Iterable[str]:
    """The distinct sentences of a file of pairs."""
    sides = ("sentence1", "sentence2")
    return dict.fromkeys(row[side] for _, row in read_table(path, sides) for side in sides)


def _select(lines: Callable[[], Iterable[str]], kept: np.ndarray) -> Iterator[str]:
    return itertools.compress(lines(), kept)
