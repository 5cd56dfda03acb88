"""Methods that learn from triplets: supervised SimCSE, AnglE and BeLLM."""

import pytest
import torch
from build_method import build
from method_helpers import HEADS, SENTENCES, tokenised
from transformers import LlamaConfig, LlamaModel

from cselab.losses import triplet_info_nce
from cselab.methods import SentenceOutputs

TRIPLETS = SENTENCES + SENTENCES[::-1] + SENTENCES[1:] + SENTENCES[:1]


@pytest.fixture(scope="module")
def decoder(tmp_path_factory, word_tokenizer):
    """A folder with a random decoder of two layers."""
    vocabulary = {"vocab_size": len(word_tokenizer), "pad_token_id": word_tokenizer.pad_token_id}
    sizes = {"hidden_size": 32, "intermediate_size": 48, "num_attention_heads": 2}
    config = LlamaConfig(num_hidden_layers=2, initializer_range=0.3, **sizes, **vocabulary)
    torch.manual_seed(0)
    folder = tmp_path_factory.mktemp("decoder") / "llama"
    LlamaModel(config).save_pretrained(folder)
    word_tokenizer.save_pretrained(folder)
    return str(folder)


def test_supervised_simcse_reads_three_views(towers, word_tokenizer):
    """Prevents the contradicting sentences from being taken for the entailed ones."""
    three = tokenised(word_tokenizer, TRIPLETS)
    method = build("simcse_supervised", towers)
    anchor, positive, negative = method.encoder(**three).unflatten(0, (3, -1))
    expected = triplet_info_nce(anchor, positive, negative)
    torch.testing.assert_close(method.losses(three, HEADS)["triplet"], expected)


def test_angle_wants_the_entailed_pair_above_the_contradicting(towers):
    """Prevents labels the wrong way round."""
    method = build("angle", towers)
    torch.manual_seed(0)
    anchor = torch.randn(4, 32)
    near, far = anchor + 0.1 * torch.randn(4, 32), torch.randn(4, 32)
    right = SentenceOutputs(torch.stack([anchor, near, far]))
    wrong = SentenceOutputs(torch.stack([anchor, far, near]))
    for term in ("ordered", "angle"):
        assert method.compare(right, HEADS)[term] < method.compare(wrong, HEADS)[term], term


@pytest.mark.parametrize("lora_rank", [0, 4])
def test_bellm_is_supervised_info_nce_of_the_last_token(decoder, word_tokenizer, lora_rank):
    """Eq. 6 by a loop; prevents hard negatives of one's own sentence only, frozen weights that
    train, and an evaluation of something else than what was trained."""
    prompt = "the {sentence} is"
    method = build("bellm", [decoder], lora_rank=lora_rank, prompt=prompt)
    trained = [name for name, p in method.named_parameters() if p.requires_grad]
    assert all("lora_" in name for name in trained) == (lora_rank > 0)
    rows = tokenised(word_tokenizer, [f"the {sentence} is" for sentence in TRIPLETS])
    x, yes, no = method.encoder(**rows).unflatten(0, (3, -1))
    expected = 0.0
    for i in range(4):
        entailed, contradicting = (
            torch.exp(torch.cosine_similarity(x[i : i + 1], side) / 0.05) for side in (yes, no)
        )
        expected -= torch.log(entailed[i] / (entailed.sum() + contradicting.sum())) / 4
    torch.testing.assert_close(method.losses(rows, HEADS)["triplet"], expected)
    torch.testing.assert_close(method.encoder.encode(SENTENCES), x.detach())
