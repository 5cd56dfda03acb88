"""Representative words: what the language-model head says of the state behind a prompt."""

import pytest
import torch
from transformers import LlamaConfig, LlamaForCausalLM, LlamaModel

from cselab.errors import DataError, ModelError
from cselab.models import SentenceEncoder, load_decoder
from cselab.workbook.analysis import frequent_words, load_head, representative_words

SENTENCES = ["the dog", "a man is playing guitar in the park .", "a red ball is under the table"]
PROMPT = "the {sentence} is"


@pytest.fixture(scope="module", params=["tied", "untied"])
def folder(request, tmp_path_factory, word_tokenizer):
    """A causal language model whose head is its embeddings, or a matrix of its own."""
    size = {"hidden_size": 16, "intermediate_size": 32, "num_attention_heads": 2}
    size |= {"num_hidden_layers": 2, "pad_token_id": 0, "initializer_range": 0.5}
    rows = len(word_tokenizer) + 3  # those of the head that belong to no token
    config = LlamaConfig(vocab_size=rows, tie_word_embeddings=request.param == "tied", **size)
    torch.manual_seed(1)
    folder = tmp_path_factory.mktemp(request.param)
    LlamaForCausalLM(config).save_pretrained(folder)
    word_tokenizer.save_pretrained(folder)
    return folder


def encoder_of(folder, **options):
    return SentenceEncoder(*load_decoder(folder), **{"pooling": "last_token", **options})


def test_the_word_is_what_the_whole_model_predicts_next(folder):
    """Prevents the head of other weights, states without the final norm, and special tokens, rows
    without a token or full stops as words: against the stock model with its head."""
    tokenizer = encoder_of(folder).tokenizer
    model = LlamaForCausalLM.from_pretrained(folder).eval()
    words = {i: word for word, i in tokenizer.get_vocab().items() if word.isalpha()}
    expected = []
    for sentence in SENTENCES:
        ids = tokenizer(PROMPT.format(sentence=sentence), return_tensors="pt")["input_ids"]
        with torch.no_grad():
            logits = model(input_ids=ids).logits[0, -1]
        expected.append(words[max(words, key=lambda i: logits[i].item())])
    encoder = encoder_of(folder, prompt=PROMPT)
    assert representative_words(encoder, SENTENCES, load_head(folder)) == expected


def test_frequent_words_are_counted_without_signs(word_tokenizer):
    """Prevents full stops and special tokens from being the most frequent words."""
    text = ["the dog .", "the cat .", "the dog is big .", "a dog . . . ."]
    assert frequent_words(text, word_tokenizer, 2) in (["the", "dog"], ["dog", "the"])
    assert len(frequent_words(text, word_tokenizer, 100)) == 6
    with pytest.raises(DataError, match="expected a text with words"):
        frequent_words([". ,"], word_tokenizer, 3)


def test_a_folder_without_a_head_and_an_encoder_that_reads_other_tokens_are_refused(
    folder, tmp_path, word_tokenizer
):
    """Prevents words of a head that was drawn at random, and of a mean of states."""
    config = LlamaModel.config_class.from_pretrained(folder)
    config.tie_word_embeddings = False
    LlamaModel(config).save_pretrained(tmp_path)
    with pytest.raises(ModelError, match="lacks lm_head.weight"):
        load_head(tmp_path)
    with pytest.raises(ModelError, match="no decoder with a head at"):
        load_head(tmp_path / "nothing")
    head, narrow = load_head(folder), load_head(folder)[:, :8]
    bare = SentenceEncoder(load_decoder(folder)[0], None, pooling="last_token")
    for encoder, rows, message in (
        (encoder_of(folder, pooling="mean"), head, "the encoder pools 'mean'"),
        (encoder_of(folder), narrow, "the head has shape .*from one folder"),
        (bare, head, "built without a tokenizer"),
    ):
        with pytest.raises((ModelError, DataError), match=message):
            representative_words(encoder, SENTENCES, rows)
