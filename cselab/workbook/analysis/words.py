"""The words that a decoder's representative token predicts, BeLLM's appendix A.

https://arxiv.org/abs/2311.05296. The state that serves as the sentence's vector is read by the
language-model head, as if the decoder went on writing behind its prompt.
"""

from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from jaxtyping import Float
from torch import Tensor
from transformers import AutoModelForCausalLM, PreTrainedTokenizerBase

from cselab.errors import DataError, ModelError
from cselab.models import SentenceEncoder
from cselab.models.backbone import first_line, has_only_pickles, quiet_loading, transformer_folder
from cselab.models.encode import tokenizer_of
from cselab.models.texts import as_sentences

BATCH = 256


def load_head(folder: str | Path) -> Float[Tensor, "V d"]:
    """The language-model head of a stock decoder, which `load_decoder` leaves out, in float32.

    Args:
        folder: Folder of the decoder before training: an encoder that was trained has no head of
            its own.

    Raises:
        ModelError: For a folder without a decoder, and for weights without a head.

    Examples:
        >>> from cselab.workbook.analysis import load_head
        >>> from cselab.data.hub import model_folder
        >>> load_head(model_folder("tiny-llama")).shape
        torch.Size([8000, 192])
    """
    folder = transformer_folder(folder)
    try:
        with quiet_loading():
            model, info = AutoModelForCausalLM.from_pretrained(
                folder,
                dtype="auto",
                use_safetensors=not has_only_pickles(folder),
                output_loading_info=True,
                trust_remote_code=False,
            )
    except Exception as error:  # odd values in config.json raise errors of any kind
        reason = f"no decoder with a head at {str(folder)!r} ({first_line(error)})"
        raise ModelError(reason) from None
    if info["missing_keys"]:
        raise ModelError(
            f"{folder} lacks {sorted(info['missing_keys'])[0]}; give the pretrained model's folder"
        )
    return model.get_output_embeddings().weight.detach().float()


def representative_words(
    encoder: SentenceEncoder, sentences: Iterable[str], head: Float[Tensor, "V d"]
) -> list[str]:
    """The word that each sentence's vector predicts, in lower case: the token of the head's largest
    logit among those of letters alone; of a word of several tokens the first.

    BeLLM, appendix A, https://arxiv.org/abs/2311.05296.

    Args:
        encoder: A decoder with `pooling="last_token"`, usually with a prompt that asks for one
            word.
        head: Language-model head of the decoder; see `load_head`.

    Raises:
        ModelError: For another pooling, and for a head of another size.
        DataError: For an encoder without a tokenizer.

    Examples:
        >>> import cselab
        >>> from cselab.workbook.analysis import load_head, representative_words
        >>> from cselab.data.hub import model_folder
        >>> decoder = cselab.load("tiny-llama", pooling="last_token")
        >>> head = load_head(model_folder("tiny-llama"))
        >>> representative_words(decoder, ["A man plays the"], head)
        ['and']
    """
    if encoder.pooling != "last_token":
        raise ModelError(f"the encoder pools {encoder.pooling!r}; load it with 'last_token'")
    tokenizer = tokenizer_of(encoder)
    width = encoder.backbone.config.hidden_size
    if head.shape[1] != width or len(head) < len(tokenizer):
        shape = f"shape {tuple(head.shape)}, expected ({len(tokenizer)} or more, {width})"
        raise ModelError(f"the head has {shape}; load head and decoder from one folder")
    texts = _texts(tokenizer)
    chosen = [i for i, text in enumerate(texts) if text.isalpha()]
    head = head[chosen].float().cpu()
    parts = encoder.encode(sentences).split(BATCH)
    best = [i for part in parts for i in (part @ head.T).argmax(1).tolist()]
    return [texts[chosen[i]] for i in best]


def frequent_words(
    sentences: Iterable[str], tokenizer: PreTrainedTokenizerBase, count: int
) -> list[str]:
    """The most frequent words of a text, most frequent first: tokens of letters alone.

    Raises:
        DataError: For a text without a word.

    Examples:
        >>> import cselab
        >>> from cselab.workbook.analysis import frequent_words
        >>> text = ["A dog runs.", "A dog sleeps.", "The dog barks."]
        >>> frequent_words(text, cselab.load("tiny-bert").tokenizer, 2)
        ['dog', 'a']
    """
    texts = _texts(tokenizer)
    text = as_sentences(sentences, "frequent_words")
    ids = tokenizer(text, add_special_tokens=False)["input_ids"] if text else []
    words = Counter(texts[i] for sentence in ids for i in sentence if texts[i].isalpha())
    if not words:
        raise DataError("frequent words: expected a text with words")
    return [word for word, _ in words.most_common(count)]


def _texts(tokenizer: PreTrainedTokenizerBase) -> list[str]:
    """Text of each token, in lower case without the spaces around it; "" of special tokens."""
    special = set(tokenizer.all_special_ids)
    texts = tokenizer.batch_decode([[i] for i in range(len(tokenizer))])
    return ["" if i in special else text.strip().lower() for i, text in enumerate(texts)]
