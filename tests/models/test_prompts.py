"""Prompts: whole templates, cut sentences."""

import pytest
from roberta_helpers import train_byte_tokenizer

from cselab.data.sources import embedded_dir
from cselab.models import load_tokenizer
from cselab.models.prompts import fill_prompt, prompt_template


@pytest.fixture(scope="module")
def tokenizer():
    return load_tokenizer(embedded_dir() / "backbones" / "tiny-llama")


LONG = "the old man in the park was reading a very long book about the history of the town " * 3


@pytest.mark.parametrize("prompt", ["representative", "summarize", "About {sentence}, in short:"])
def test_a_long_sentence_is_cut_and_the_prompt_is_not(tokenizer, prompt):
    """Prevents plain truncation from removing the very words that the representative token stands
    behind."""
    frame = prompt_template(prompt)
    start, end = frame.split("{sentence}")
    for text, length in ((LONG, 24), ("The dog.", 64), (LONG, 128)):
        (filled,) = fill_prompt(prompt, [text], tokenizer, length)
        assert filled.startswith(start)
        assert filled.endswith(end)
        ids = tokenizer(filled)["input_ids"]
        assert len(ids) <= length
        kept = filled.removeprefix(start).removesuffix(end)
        assert text.startswith(kept)
        if kept != text:
            assert len(ids) > length - 3  # no more is cut than must be


def test_a_prompt_that_joins_into_fewer_tokens_without_its_sentence_stays_whole():
    """Prevents a sentence that is one token too long, so that the tokenizer cuts the prompt's end:
    byte-level, `""` is one token, and two quotes around a sentence are two."""
    text = ['He said "" and "no" .', LONG, prompt_template("summarize")] * 20
    byte_level = train_byte_tokenizer(text)
    assert len(byte_level(' ""', add_special_tokens=False)["input_ids"]) == 1
    (filled,) = fill_prompt("summarize", [LONG], byte_level, 24)
    assert filled.endswith('" in one word:"')
    assert len(byte_level(filled)["input_ids"]) == 24


def test_each_sentence_has_its_own_condition(tokenizer):
    """Prevents the first condition from being put around all sentences."""
    filled = fill_prompt(
        "conditional", ["A dog.", "A cat."], tokenizer, 64, conditions=["the animal", "the number"]
    )
    assert filled == [
        'Given the context the animal, summarize the sentence A dog. in one word:"',
        'Given the context the number, summarize the sentence A cat. in one word:"',
    ]


def test_braces_in_a_sentence_are_text(tokenizer):
    """Prevents str.format from tripping over, or filling, what a user wrote."""
    assert fill_prompt("representative", ["a {condition} {0} {"], tokenizer, 64) == [
        'The representative word for a {condition} {0} { is:"'
    ]
