"""Methods with a prompt: PromptBERT, SNCSE and PromCSE."""

import copy

import pytest
import torch
from build_method import build
from method_helpers import HEADS, SENTENCES, tokenised

from cselab.data.augment import negate
from cselab.errors import ModelError, SettingsError
from cselab.methods import registered
from cselab.methods.baselines.promptbert import TEMPLATES
from cselab.models.encode import evaluating

FAMILIES = pytest.mark.parametrize("family", ["bert", "roberta"])


@pytest.fixture
def folder(family, request, word_tokenizer, tmp_path):
    """A stock folder of a random encoder of the family."""
    request.getfixturevalue(f"make_{family}")(1).save_pretrained(tmp_path)
    word_tokenizer.save_pretrained(tmp_path)
    return str(tmp_path)


@FAMILIES
def test_a_template_without_a_sentence_is_nothing(folder, word_tokenizer):
    """Template denoising of the empty sentence is 0, of a sentence it is not. Prevents positions
    that are off by one, and RoBERTa's."""
    method = build("promptbert", [folder])
    texts = tokenised(word_tokenizer, ["", "a dog"])
    for template in TEMPLATES:
        empty, sentence = method.denoised(texts, template)
        torch.testing.assert_close(empty, torch.zeros_like(empty), atol=2e-6, rtol=0)
        assert sentence.abs().max() > 1e-2


@FAMILIES
def test_promptbert_evaluates_what_it_trains(folder, word_tokenizer):
    """Prevents a template whose mask is read elsewhere at inference, as positions of RoBERTa
    invite: a constant dev score."""
    method = build("promptbert", [folder])
    trained = method.embed(tokenised(word_tokenizer, SENTENCES))
    encoded = method.encoder.encode(SENTENCES)
    torch.testing.assert_close(encoded, trained, atol=1e-5, rtol=1e-4)
    assert torch.pdist(trained).min() > 1e-3
    with pytest.raises(ModelError, match="no mask token"):
        method.encoder(**tokenised(word_tokenizer, SENTENCES))


def test_clean_vectors_of_a_prompted_method_are_all_of_one_template(towers, batch):
    """Prevents a second template for half of the negatives of "off_info"."""
    method = build("promptbert", towers, terms=["nce", "off_info"], dropout=0.1).train()
    clean = method(batch).clean[0]
    with evaluating(method):
        torch.testing.assert_close(clean, method.denoised(method.texts(batch), TEMPLATES[0]))


def test_sncse_reads_the_negated_first_view(towers, batch):
    """Prevents a soft negative of the second view, or of the sentence itself."""
    method = build("sncse", towers)
    outputs = method(batch)
    negated = negate(method.texts(batch), method.tokens)
    expected = method.denoised(negated, TEMPLATES[0])
    torch.testing.assert_close(outputs.extra[0], expected)
    assert not torch.isclose(outputs.extra[0], outputs.sentence[0]).all(dim=1).any()


def test_promcse_trains_the_prompt_alone(towers, batch):
    """Prevents an encoder that moves, and embeddings of old words that do."""
    method = build("promcse", towers).train()
    before = copy.deepcopy(method.encoder.state_dict())
    trained = [p for p in method.parameters() if p.requires_grad]
    optimizer = torch.optim.AdamW(trained, lr=0.1, weight_decay=0.0)
    sum(method.losses(batch, HEADS).values()).backward()
    optimizer.step()
    for name, value in method.encoder.state_dict().items():
        if "word_embeddings" in name:
            assert torch.equal(value[:-16], before[name][:-16])
            assert not torch.isclose(value[-16:], before[name][-16:]).all(dim=1).any()
        else:
            assert torch.equal(value, before[name]), name


def test_promcse_without_weight_decay_only():
    """Prevents the embeddings of old words from shrinking, which a mask on gradients cannot
    stop."""
    with pytest.raises(SettingsError, match=r"^schedule: weight_decay=0\.01 .*; set it to 0"):
        registered("promcse").Config().changed({"weight_decay": 0.01})
