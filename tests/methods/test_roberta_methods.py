"""Stage 1, the twins and every other method of two views on RoBERTa: byte-level tokens, `<s>` and
`</s>`, positions after the padding id."""

from dataclasses import replace

import pytest
import torch
from build_method import build
from method_helpers import HEADS, TAILS, TWO_VIEWS, in_training, small_parts
from roberta_helpers import TEXTS, save_roberta, tokenised
from transformers import RobertaModel

from cselab.experiments import configure
from cselab.losses import icnce, ictm, info_nce
from cselab.methods import create, registered
from cselab.models import SentenceEncoder


@pytest.fixture(scope="module")
def folders(tmp_path_factory) -> list[str]:
    """Folders of two RoBERTas of twelve layers."""
    folder = tmp_path_factory.mktemp("deep")
    return [save_roberta(folder / name, seed) for seed, name in enumerate("ab")]


@pytest.fixture(scope="module")
def shallow(tmp_path_factory):
    """The folder of a RoBERTa of four layers."""
    return save_roberta(tmp_path_factory.mktemp("shallow"), 1, layers=4)


@pytest.fixture
def batch():
    """The texts, each as two equal views."""
    return tokenised(2 * TEXTS)


@torch.no_grad()
def stock(folder, batch):
    """[CLS] and pooler output of transformers' own model, (2, N, d) each."""
    output = RobertaModel.from_pretrained(folder, dtype=torch.float32).eval()(**batch)
    vectors = (output.last_hidden_state[:, 0], output.pooler_output)
    return [x.unflatten(0, (2, -1)) for x in vectors]


def test_the_terms_read_what_the_stock_model_gives(folders, batch):
    """Prevents a `<s>` of other positions or a pooler that is not RoBERTa's."""
    (cls_i, pooled_i), (cls_ii, pooled_ii) = (stock(folder, batch) for folder in folders)
    close = dict(atol=1e-3, rtol=1e-3)
    nce = build("simcse", folders).losses(batch, HEADS)["nce"]
    torch.testing.assert_close(nce, info_nce(*cls_i), **close)
    expected = {
        "nce": info_nce(*cls_i) + info_nce(*cls_ii),
        "icnce": icnce(cls_i, cls_ii),
        "ictm": ictm(cls_i, cls_ii, pooled_i, pooled_ii),
    }
    torch.testing.assert_close(build("tncse", folders).losses(batch, TAILS), expected, **close)
    twin = build("jtcse", folders, caels=6)
    cross = (x.unflatten(0, (2, -1)) for x in twin.encoder(**batch)[:-3:-1])
    expected["icnce"] = icnce(cls_ii, cls_i) + icnce(*cross)  # TAILS: tower II has the rows
    torch.testing.assert_close(twin.losses(batch, TAILS), expected, **close)


@pytest.mark.parametrize("name", ["simcse", "tncse", "jtcse"])
def test_a_step_of_the_released_preset_moves_every_weight(folders, batch, name):
    """Prevents BERT's dropout or batch in RoBERTa's released twins, and weights that no term
    reaches."""
    config = configure(name, "paper", preset="released", changes={"backbone": folders[0]}).method
    method = create(config, folders=folders[: len(registered(name).tower_names)]).train()
    rates = {m.p for m in method.encoder.modules() if isinstance(m, torch.nn.Dropout)}
    assert rates == {0.0175 if name == "tncse" else 0.1}
    assert config.schedule.batch_size == (512 if name == "simcse" else 256)
    if name == "jtcse":
        assert method.encoder.cael == (2, 4, 6, 8, 10, 12)
    torch.manual_seed(0)
    losses = method.losses(batch, HEADS)
    sum(losses.values()).backward()
    # of the keys' biases the softmax depends on nothing; the pooler is ICTM's alone
    still = ("key.bias", *(("pooler.",) if name == "simcse" else ()))
    for name, weights in method.encoder.named_parameters():
        if not any(part in name for part in still):
            assert weights.grad is not None, name
            assert weights.grad.isfinite().all(), name
            assert weights.grad.any(), name


@pytest.mark.parametrize("name", TWO_VIEWS)
def test_every_method_of_two_views_trains_on_roberta(name, shallow, tmp_path, batch):
    """Prevents a method that needs [MASK], [CLS], token types or positions from 0, and one whose
    saved encoder lacks a head, a queue or a second encoder that its embedding needs."""
    method = build(name, [shallow], **small_parts(name)).train()
    torch.manual_seed(0)
    losses = method.losses(in_training(name, batch), replace(HEADS, step=500))
    assert list(losses) == list(registered(name).Config().terms)
    sum(losses.values()).backward()
    gradients = [p.grad for p in method.encoder.parameters() if p.grad is not None]
    assert all(gradient.isfinite().all() for gradient in gradients)
    assert any(gradient.any() for gradient in gradients)
    encoder = method.eval().encoder
    encoder.save_pretrained(tmp_path)
    again = SentenceEncoder.from_pretrained(tmp_path)
    torch.testing.assert_close(again.encode(TEXTS), encoder.encode(TEXTS))


def test_promcse_encodes_the_tokens_that_it_trains(shallow):
    """Prevents spaces between the prompt's tokens, which a byte-level tokenizer reads as tokens: an
    encoder that is trained under one prompt and asked under another."""
    method = build("promcse", [shallow])
    with torch.no_grad():
        trained = method.embed(tokenised(TEXTS))
    torch.testing.assert_close(method.encoder.encode(TEXTS), trained, atol=1e-5, rtol=1e-4)
