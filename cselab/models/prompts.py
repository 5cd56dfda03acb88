"""Prompts: templates around a sentence; long sentences are truncated, the template never is."""

from collections.abc import Sequence

from transformers import PreTrainedTokenizerBase

from cselab.errors import SettingsError

PROMPTS = {
    "": "{sentence}",
    "representative": 'The representative word for {sentence} is:"',
    "representative_released": 'The representative word for sentence {sentence} is:"',
    "summarize": 'Summarize sentence "{sentence}" in one word:"',
    "conditional": 'Given the context {condition}, summarize the sentence {sentence} in one word:"',
}
"""Templates of BeLLM's paper and code: "representative" for training and STS, "summarize" for the
degradation experiment, "conditional" for C-STS."""


def prompt_template(prompt: str) -> str:
    """The template of a name in PROMPTS, or `prompt` itself.

    Raises SettingsError for one without {sentence}.
    """
    text = PROMPTS.get(prompt, prompt)
    if "{sentence}" not in text:
        names = ", ".join(filter(None, PROMPTS))
        raise SettingsError(
            f"the prompt {prompt!r} is none of {names}; write {{sentence}} where the sentence goes"
        )
    return text


def fill_prompt(
    prompt: str,
    sentences: Sequence[str],
    tokenizer: PreTrainedTokenizerBase,
    max_length: int,
    *,
    conditions: Sequence[str] | None = None,
) -> list[str]:
    """Put sentences into the prompt, truncated so that the whole has at most `max_length` tokens.

    The prompt itself must stay complete: a decoder's representative word is read at its end.

    Args:
        prompt: A name in PROMPTS, or a template with {sentence}.
        max_length: In tokens, special tokens included.
        conditions: One per sentence, for a prompt with {condition}; they are not truncated.

    Raises:
        SettingsError: Unless there are as many conditions as sentences where the prompt has
            {condition}, and none elsewhere; and for a prompt that leaves no tokens for a sentence.
    """
    text = prompt_template(prompt)
    number = len(conditions or sentences)
    if ("{condition}" in text) != (conditions is not None) or number != len(sentences):
        raise SettingsError(
            f"the prompt {text!r} and the conditions do not fit: {len(sentences)} sentences, "
            f"{'no' if conditions is None else len(conditions)} conditions"
        )
    frames = [text] * len(sentences)
    if conditions is not None:
        frames = [text.replace("{condition}", condition) for condition in conditions]
    without_sentence = tokenizer([f.replace("{sentence}", "") for f in frames])["input_ids"]
    pairs = zip(frames, sentences, strict=True)
    filled = [frame.replace("{sentence}", sentence) for frame, sentence in pairs]
    lengths = [len(ids) for ids in tokenizer(filled)["input_ids"]]
    for i, (length, empty) in enumerate(zip(lengths, without_sentence, strict=True)):
        if length > max_length:
            room = max(0, max_length - len(empty))
            filled[i] = _fill(frames[i], sentences[i], tokenizer, max_length, room)
    return filled


def _fill(
    frame: str, sentence: str, tokenizer: PreTrainedTokenizerBase, max_length: int, room: int
) -> str:
    """The frame around at most `room` tokens of a sentence, and fewer where it joins with them into
    more tokens than with none: a byte-level tokenizer may read `""` as one token."""
    encoded = tokenizer(sentence, add_special_tokens=False, return_offsets_mapping=True)
    for _, end in reversed(encoded["offset_mapping"][:room]):
        filled = frame.replace("{sentence}", sentence[:end])
        if len(tokenizer(filled)["input_ids"]) <= max_length:
            return filled
    raise SettingsError(
        f"the prompt {frame!r} leaves no room for a sentence; give a larger max_length"
    )
