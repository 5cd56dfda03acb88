"""Texts as users give them: any iterable of strings, and what a tokenizer loses of them."""

import warnings

import datasets
import jaxtyping
import numpy as np
import pandas as pd
import pytest
import torch

from cselab.data.token_rows import Rows
from cselab.errors import DataError
from cselab.methods.baselines.fitted import Flowed, Whitened
from cselab.methods.baselines.sif import SifMean
from cselab.models import Ensemble, SentenceEncoder, TwinEncoder
from cselab.models.texts import _warn_once

TEXT = ["a man is playing guitar .", "the dog", "the big red ball was not under the table ."]
MANY = [f"{who} is {does} ." for who in ("a man", "the dog") for does in ("eating", "running")]


@pytest.fixture(params=["single", "prompt", "twin", "ensemble", "sif", "whitened", "flowed"])
def encoder(request, make_bert, word_tokenizer, monkeypatch):
    """Every kind of encoder."""
    monkeypatch.setattr("cselab.methods.baselines.fitted.STEPS", 2)
    single = SentenceEncoder(make_bert(1), word_tokenizer)
    twin = TwinEncoder(make_bert(1), make_bert(2), tokenizer=word_tokenizer)
    rows = Rows.tokenize(20 * MANY, word_tokenizer, max_length=16)
    sif = SifMean.fit(rows, word_tokenizer, size=3)
    return {
        "single": lambda: single,
        "prompt": lambda: SentenceEncoder(make_bert(1), word_tokenizer, prompt="the {sentence} ."),
        "twin": lambda: twin,
        "ensemble": lambda: Ensemble([single, twin]),
        "sif": lambda: sif,
        "whitened": lambda: Whitened(sif.encode, iter(MANY)),
        "flowed": lambda: Flowed(sif.encode, iter(MANY)),
    }[request.param]()


def test_any_iterable_of_strings_is_encoded_as_a_list_is(encoder):
    """Prevents the truth value of an array, a generator that is empty at the second reading, and
    `np.array([""])` that has no vector."""
    expected = encoder.encode(TEXT)
    for given in (
        tuple(TEXT),
        iter(TEXT),
        (text for text in TEXT),
        np.array(TEXT),
        np.array(TEXT, dtype=object),
        [np.str_(text) for text in TEXT],
        pd.Series(TEXT, index=[7, 3, 5]),
        pd.Series(TEXT, dtype="string"),
        datasets.Dataset.from_dict({"text": TEXT})["text"],
        dict.fromkeys(TEXT).keys(),
    ):
        assert torch.equal(encoder.encode(given), expected)
    width = expected.shape[1]
    for given in ([], np.array([], dtype=str), iter(()), pd.Series([], dtype=str)):
        assert encoder.encode(given).shape == (0, width)
    assert encoder.encode(np.array([""])).shape == (1, width)


def test_what_is_no_list_of_strings_is_one_line(encoder, monkeypatch):
    """Prevents the letters of one string, the names of a table's columns, and a traceback."""
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)  # users have no type checker
    for given, message in (
        ("a dog", r"got one string; wrap it: encode\(\[sentence\]\)"),
        (np.array("a dog"), "got ndarray; give a list"),
        (pd.DataFrame({"text": TEXT}), "got DataFrame; give a list, or one column"),
        ({"a dog": 1}, "got dict"),
        (b"a dog", "got bytes"),
        (None, "got NoneType"),
        (pd.Series(["a dog", float("nan")]), "got float at position 1: nan"),
        (np.array([TEXT]), "got ndarray"),
        (["a dog", "\ud83d"], r"half a character \('\\ud83d'\) at position 1"),
    ):
        with pytest.raises(DataError, match=message) as caught:
            encoder.encode(given)
        assert "\n" not in str(caught.value)


def warnings_of(do) -> list[str]:
    _warn_once.cache_clear()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        do()
        do()  # a dev split is encoded many times
    return [str(warning.message) for warning in caught if warning.filename == "cselab"]


def test_text_that_the_tokenizer_cannot_hold_is_said_once(make_bert, word_tokenizer):
    """Prevents a score of [UNK]s that looks like one of sentences, and a false alarm."""
    encoder = SentenceEncoder(make_bert(1), word_tokenizer)
    assert warnings_of(lambda: encoder.encode([*TEXT, "a zebra", ""])) == []  # one of 20 words
    [unknown] = warnings_of(lambda: encoder.encode(["le chien dort", "the dog"]))
    assert unknown.startswith("60% of the tokens of the text to encode are [UNK]")
    [cut] = warnings_of(lambda: encoder.encode(["the dog " * 60, "a cat " * 60]))
    assert cut.startswith("100% of the sentences of the text to encode are cut at 64 tokens")


def test_a_token_that_also_ends_texts_is_not_unknown(make_bert, word_tokenizer):
    """Prevents a false alarm for GPT-2's tokenizer and its like, with one token for all roles."""
    tokenizer = type(word_tokenizer)(
        tokenizer_object=word_tokenizer.backend_tokenizer,
        **dict.fromkeys(("unk_token", "sep_token", "cls_token", "eos_token"), "[SEP]"),
        pad_token="[PAD]",
    )
    encoder = SentenceEncoder(make_bert(1), tokenizer)
    assert warnings_of(lambda: encoder.encode(["the dog"])) == []
