"""Training rows: tokens of the text alone, or with its round trips."""

from collections.abc import Callable
from pathlib import Path
from typing import Literal

import datasets
from transformers import PreTrainedTokenizerBase

from cselab.data.corpus import Corpus, load_corpus, tokenize_corpus
from cselab.data.settings import Mode

Widen = Callable[[datasets.Dataset, Corpus], datasets.Dataset]
"""Gives the rows of sentences further columns."""


def text_rows(
    text: Corpus,
    tokenizer: PreTrainedTokenizerBase,
    *,
    max_length: int,
    cache_dir: Path,
    mode: Mode = "none",
    trips: Callable[[], Path] | None = None,
    widen: Widen = lambda rows, corpus: rows,
) -> datasets.Dataset:
    """Tokenised rows of the text alone, or with its round trips as `mode` says.

    Args:
        mode: "none"; "twice": every sentence twice; or as in `combine`.
        trips: Makes the file of round trips, a line a sentence, if the mode needs it.
        widen: Called with the text's rows, and with those of round trips that join it.
    """

    def tokenised(corpus: Corpus) -> datasets.Dataset:
        return tokenize_corpus(corpus, tokenizer, max_length=max_length, cache_dir=cache_dir)

    rows = widen(tokenised(text), text)
    if mode == "none" or trips is None:
        return rows
    if mode == "twice":
        return combine(rows, rows, "append")
    back = load_corpus([str(trips())])
    other = tokenised(back)
    return combine(rows, other if mode == "pair" else widen(other, back), mode)


def combine(
    rows: datasets.Dataset, trips: datasets.Dataset, mode: Literal["append", "replace", "pair"]
) -> datasets.Dataset:
    """Rows of sentences and, in the same order, of their round trips as one data set.

    Args:
        mode: "append": both are sentences; "replace": only the round trips; "pair": the round trip
            is the second view.
    """
    if mode == "append":
        return datasets.concatenate_datasets([rows, trips])
    if mode == "replace":
        return trips
    second = trips.select_columns(["input_ids"]).rename_column("input_ids", "input_ids_b")
    return datasets.concatenate_datasets([rows, second], axis=1)
