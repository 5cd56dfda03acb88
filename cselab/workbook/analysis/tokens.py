"""Tokens as a reader knows them: text, without the marks of byte-level tokenizers."""

from collections.abc import Sequence

from transformers import PreTrainedTokenizerBase

BROKEN, SPACE = "\ufffd", "␣"
"""What a decoder writes for a part of a character; the label of a token that is a space."""
LONGEST_CHARACTER = 4
"""Bytes of UTF-8."""


def token_labels(tokenizer: PreTrainedTokenizerBase, ids: Sequence[int]) -> list[str]:
    """Label each token with its text: of byte-level tokenizers without "Ġ", a lone space as "␣".

    A character that is several tokens ("é" as two bytes) is the label of each of them.

    Examples:
        >>> import cselab
        >>> from cselab.workbook.analysis import token_labels
        >>> tokenizer = cselab.load("tiny-llama").tokenizer
        >>> token_labels(tokenizer, tokenizer("A dog runs.")["input_ids"])
        ['[CLS]', 'a', 'dog', 'runs', '.', '[SEP]']
    """
    written = tokenizer.convert_ids_to_tokens(list(ids))
    decode = tokenizer.convert_tokens_to_string
    labels: list[str] = []
    while len(labels) < len(written):
        ahead = written[len(labels) :][:LONGEST_CHARACTER]
        texts = [decode(ahead[:size]) for size in range(1, len(ahead) + 1)]
        size = next((n for n, text in enumerate(texts, 1) if BROKEN not in text), 1)
        text = texts[size - 1]
        labels += [text.strip() or (SPACE if text else ahead[0])] * size
    return labels
