"""Texts as users give them, and what a tokenizer loses of them."""

import functools
import warnings
from collections.abc import Iterable, Mapping
from itertools import chain
from typing import Any

import numpy as np
from transformers import PreTrainedTokenizerBase

from cselab.errors import DataError

UNKNOWN, CUT = 0.1, 0.75
"""Shares that are warned of: of tokens that are unknown, of texts that are cut. Of real sentences,
two thirds are cut at the papers' 32 tokens."""


def as_sentences(texts: Any, reader: str = "encode") -> list[str]:
    """The strings of any iterable, as a list: of an array, a column of a table, a generator.

    Raises:
        DataError: With the `reader`, for a single string, a table or mapping, an entry that is no
            string, and a string that is no Unicode text.
    """
    if isinstance(texts, str):
        call = f"{reader}([sentence])" if reader.isidentifier() else "[sentence]"
        raise DataError(f"{reader} takes a list of sentences, got one string; wrap it: {call}")
    is_list = isinstance(texts, Iterable) and getattr(texts, "ndim", 1) == 1
    if not is_list or isinstance(texts, Mapping | bytes):
        raise DataError(
            f"{reader} takes a list of sentences, got {type(texts).__name__}; give a list, or one "
            "column of a table"
        )
    sentences = []
    for position, text in enumerate(texts):
        if not isinstance(text, str):
            raise DataError(
                f"{reader} takes strings, got {type(text).__name__} at position {position}: "
                f"{' '.join(repr(text).split())[:60]}"
            )
        sentences.append(str(text))  # of numpy's strings
    try:
        "".join(sentences).encode()
    except UnicodeEncodeError as error:
        half = error.object[error.start]
        position = next(i for i, text in enumerate(sentences) if half in text)
        raise DataError(
            f"{reader} takes Unicode text, got half a character ({half!r}) at position {position}; "
            "read the text again as UTF-8"
        ) from None
    return sentences


def warn_of_lost_text(
    tokens: tuple[np.ndarray, np.ndarray],
    tokenizer: PreTrainedTokenizerBase,
    limit: int | None,
    text: str,
) -> None:
    """Warn, once, if many tokens of a text are unknown, or most of its sentences are cut.

    `tokens` are as in `flattened`; sentences were cut at `limit` tokens, if any; `text` names them.
    """
    ids, lengths = tokens
    roles = ("bos", "eos", "sep", "pad", "cls", "mask")
    others = {getattr(tokenizer, f"{role}_token_id", None) for role in roles} - {None}
    unknown = tokenizer.unk_token_id
    if unknown is not None and unknown not in others:  # GPT-2 has one token for all of them
        words = max(1, len(ids) - int(np.isin(ids, list(others)).sum()))
        if (share := int((ids == unknown).sum()) / words) >= UNKNOWN:
            _warn_once(
                f"{share:.0%} of the tokens of {text} are {tokenizer.unk_token}: the tokenizer has "
                "none for these words or signs; choose a model of this language and script"
            )
    if limit and len(lengths) and (share := float((lengths >= limit).mean())) >= CUT:
        _warn_once(
            f"{share:.0%} of the sentences of {text} are cut at {limit} tokens; split them, or "
            "give a larger max_length if the model reads more"
        )


def flattened(ids: list[list[int]]) -> tuple[np.ndarray, np.ndarray]:
    """All tokens of sentences, one after the other, and the number of them in each."""
    flat = np.fromiter(chain.from_iterable(ids), np.int64)
    return flat, np.fromiter(map(len, ids), np.int64)


@functools.cache
def _warn_once(message: str) -> None:
    # without the line of code, which would be a second line
    warnings.warn_explicit(message, UserWarning, "cselab", 1)
