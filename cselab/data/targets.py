"""A teacher's vectors as a column of the tokenised sentences, computed once and memory-mapped."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import datasets
import numpy as np
import pyarrow as pa

from cselab.data.corpus import Corpus, reuse_arrow, write_arrow
from cselab.errors import DataError


def with_targets(
    rows: datasets.Dataset, corpus: Corpus, encode: Callable[[list[str]], Any], path: str | Path
) -> datasets.Dataset:
    """Add a column `target` to the tokens of a corpus: (d,) float32 per sentence, memory-mapped.

    Args:
        encode: The teacher, a function from n sentences to (n, d); it is called on chunks.
        path: The Arrow file of the vectors, 4 d bytes per sentence; written unless it is whole.

    Raises:
        DataError: If there are not as many rows as sentences, or as vectors in an existing file.
    """
    if len(rows) != len(corpus):
        raise DataError(
            f"{len(rows)} rows are not the tokens of {len(corpus)} sentences; tokenize them again"
        )
    path, schema = Path(path), pa.schema([("target", pa.list_(pa.float32()))])

    def vectors(chunk: list[str]) -> list[list]:
        return [list(np.asarray(encode(chunk), dtype=np.float32))]

    reuse_arrow(path, lambda: write_arrow(path, schema, corpus, vectors))
    targets = datasets.Dataset.from_file(str(path))
    if len(targets) != len(rows):
        raise DataError(
            f"{path} has {len(targets)} vectors for {len(rows)} sentences; remove it to try again"
        )
    return datasets.concatenate_datasets([rows, targets], axis=1)
