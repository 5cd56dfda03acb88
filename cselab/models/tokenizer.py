"""Tokenizers of backbones: loaded, checked against the model, and the text that both can read."""

from pathlib import Path

from transformers import AutoTokenizer, PreTrainedModel, PreTrainedTokenizerBase

from cselab.errors import ModelError
from cselab.models.backbone import first_line, longest_input, transformer_folder


def load_tokenizer(name_or_path: str | Path) -> PreTrainedTokenizerBase:
    """Load the tokenizer of a folder or a name on the hub, which then pads on the right.

    Raises:
        ModelError: If there is none, or if it maps plain words to the unknown token.
    """
    name_or_path = transformer_folder(name_or_path)
    try:
        tokenizer = AutoTokenizer.from_pretrained(name_or_path, trust_remote_code=False)
        words = tokenizer("the of and in a", add_special_tokens=False)["input_ids"]
    except Exception as error:  # the tokenizers library raises nothing narrower
        raise ModelError(
            f"no tokenizer at {str(name_or_path)!r}: expected a tokenizer.json beside config.json "
            f"({first_line(error)})"
        ) from None
    if all(token == tokenizer.unk_token_id for token in words):
        raise ModelError(
            f"the tokenizer at {str(name_or_path)!r} maps every common English word to "
            f"{tokenizer.unk_token}: its vocabulary was not loaded; save it again as tokenizer.json"
        )
    tokenizer.padding_side = "right"  # [CLS] comes first, at position 0; training pads so too
    return tokenizer


def load_tokenizer_if_any(folder: str | Path) -> PreTrainedTokenizerBase | None:
    """The tokenizer beside a saved model; None of one that was saved without."""
    inner = Path(transformer_folder(folder))
    files = ("tokenizer*", "vocab.*", "*.model")  # of today, and of older versions
    return load_tokenizer(folder) if any(any(inner.glob(name)) for name in files) else None


def longest_text(model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase) -> int:
    """Tokens of a sentence that are read unless a max_length is given: as many as the backbone
    reads, or as its tokenizer keeps (`model_max_length`), if that is fewer."""
    return min(longest_input(model), tokenizer.model_max_length or longest_input(model))


def check_tokenizer(tokenizer: PreTrainedTokenizerBase | None, model: PreTrainedModel) -> None:
    """Raise ModelError for a tokenizer with more ids than the backbone has embeddings, or with
    another padding id or none."""
    if tokenizer is None:
        return
    tokens, rows = len(tokenizer), model.config.vocab_size
    pads, expected = tokenizer.pad_token_id, model.config.pad_token_id
    if pads is None:
        raise ModelError(
            "the tokenizer has no padding token; set its pad_token, in tokenizer_config.json too"
        )
    if tokens > rows:
        raise ModelError(
            f"the tokenizer has {tokens} tokens, the backbone {rows} embeddings; load both together"
        )
    if pads != expected:  # RoBERTa numbers its positions by this id
        raise ModelError(
            f"the tokenizer pads with id {pads}, the backbone with {expected}; load both together"
        )
