"""Prompts: templates that a sentence is put into before a decoder reads it, cut so that the template stays whole."""

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
"""Names and templates, of BeLLM's paper and code: "representative" for training and STS, "summarize" for the degradation experiment,
"conditional" for C-STS."""


def template(prompt: str) -> str:
    """The template of a name in PROMPTS, or `prompt` itself. Raises SettingsError for one without {sentence}."""
    text = PROMPTS.get(prompt, prompt)
    if "{sentence}" not in text:
        raise SettingsError(
            f"the prompt {prompt!r} is none of {', '.join(filter(None, PROMPTS))} and has no place for the sentence; "
            "write {sentence} where it goes"
        )
    return text


def put_into(
    prompt: str,
    sentences: Sequence[str],
    tokenizer: PreTrainedTokenizerBase,
    max_length: int,
    *,
    conditions: Sequence[str] | None = None,
) -> list[str]:
    """The sentences in the prompt, each cut so that the whole has at most `max_length` tokens: the end of a decoder's prompt is
    what its representative word is read from, and must not be cut off.

    conditions: one a sentence, for a prompt with {condition}; they are not cut.

    Raises SettingsError for conditions that are missing, too many or not asked for, and for no room left for a sentence.
    """
    text = template(prompt)
    if ("{condition}" in text) != (conditions is not None) or len(conditions or sentences) != len(sentences):
        raise SettingsError(
            f"the prompt {text!r} and the conditions do not fit: {len(sentences)} sentences, "
            f"{'no' if conditions is None else len(conditions)} conditions"
        )
    frames = [text] * len(sentences)
    if conditions is not None:
        frames = [text.replace("{condition}", condition) for condition in conditions]
    empty = [len(ids) for ids in tokenizer([f.replace("{sentence}", "") for f in frames])["input_ids"]]
    filled = [frame.replace("{sentence}", sentence) for frame, sentence in zip(frames, sentences, strict=True)]
    lengths = [len(ids) for ids in tokenizer(filled)["input_ids"]]
    for i, (length, frame) in enumerate(zip(lengths, empty, strict=True)):
        if length > max_length:
            filled[i] = frames[i].replace("{sentence}", _cut(sentences[i], tokenizer, max_length - frame, text))
    return filled


def _cut(sentence: str, tokenizer: PreTrainedTokenizerBase, tokens: int, text: str) -> str:
    if tokens < 1:
        raise SettingsError(f"the prompt {text!r} leaves no room for a sentence; give a larger max_length")
    ends = tokenizer(sentence, add_special_tokens=False, return_offsets_mapping=True)["offset_mapping"]
    return sentence[: ends[tokens - 1][1]]
