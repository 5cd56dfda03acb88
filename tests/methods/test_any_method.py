"""What holds for every method: any shared term joins it, its batch can be computed in parts, and
what training adds is left behind."""

from dataclasses import replace

import pytest
import torch
from build_method import build
from method_helpers import HEADS, SENTENCES, TWO_VIEWS, in_training, small_parts

from cselab.losses import barlow_twins, dimension_contrast, info_nce, off_dropout_info_nce
from cselab.methods import registered
from cselab.methods.terms import SHARED
from cselab.models import SentenceEncoder
from cselab.training.large_batch import cached_backward

STEP = replace(HEADS, step=500)
HINGES = ("masking", "soft_negative")
"""Terms that are 0, with a gradient of 0, where the order is right already."""


def small(name, folder, **changes):
    """The method without dropout, with small parts."""
    return build(name, [folder], **{"dropout": 0.0, **small_parts(name), **changes})


@pytest.mark.parametrize("name", TWO_VIEWS)
def test_any_shared_term_joins_any_method(name, small_pretrained, batch):
    """Prevents a method whose vectors a term cannot read, a term that is left out in silence, and
    one that teaches nothing."""
    torch.manual_seed(0)
    own = registered(name).Config().terms
    terms = {**own, **{term: {} for term in SHARED if term not in own}}
    terms["whitened"] = {"group_size": 2}
    changes = {"projection": 16} if name == "scd" else {}
    method = build(name, [small_pretrained], terms=terms, dropout=0.1, **changes).train()
    losses = method.losses(in_training(name, batch), STEP)
    assert list(losses) == list(terms)
    weights = [p for p in method.encoder.parameters() if p.requires_grad]
    for term, loss in losses.items():
        gradients = torch.autograd.grad(loss, weights, retain_graph=True, allow_unused=True)
        reached = [gradient for gradient in gradients if gradient is not None]
        assert reached, term
        assert all(gradient.isfinite().all() for gradient in reached), term
        assert any(gradient.any() for gradient in reached) or term in HINGES, term


@pytest.mark.parametrize("name", TWO_VIEWS)
def test_every_vector_is_read_and_survives_being_chunked(name, small_pretrained, batch):
    """Prevents vectors that no term reads, and outputs whose second axis is not the sentences'."""
    torch.manual_seed(0)
    method, rows = small(name, small_pretrained).train(), in_training(name, batch)
    step, whole = replace(STEP, ids=rows.pop("text_hash")), {}

    def loss_of(outputs):
        whole.update(outputs.tensors())
        return sum(method.compare(outputs, step).values())

    assert cached_backward(method, loss_of, rows, chunk=2).isfinite()
    for field, vectors in method(rows).tensors().items():
        assert whole[field].grad is not None or not vectors.requires_grad, field
    assert any(p.grad is not None and p.grad.any() for p in method.encoder.parameters())


def test_vectors_that_an_ablation_leaves_unread_survive_being_chunked(small_pretrained, batch):
    """Prevents an ablation that fails in chunks alone, at the gradient of what no term reads."""
    method = small("infocse", small_pretrained, terms=["reconstruction"]).train()

    def loss_of(outputs):
        return sum(method.compare(outputs, STEP).values())

    assert cached_backward(method, loss_of, batch, chunk=2).isfinite()
    layer = method.encoder.backbone.encoder.layer[0].output.dense
    assert layer.weight.grad.abs().sum() > 0


@pytest.mark.parametrize("name", TWO_VIEWS)
def test_the_terms_of_a_method_can_be_left_out(name, small_pretrained, batch):
    """Prevents an ablation that fails, or that computes what no term reads any more."""
    method = small(name, small_pretrained, terms=["nce"])
    outputs = method(in_training(name, batch))
    extra = {"extra"} if name in ("rankcse", "esimcse") else set()
    assert outputs.tensors().keys() == {"sentence", *extra}
    assert method.compare(outputs, STEP)["nce"].isfinite()


@pytest.mark.parametrize("name", TWO_VIEWS)
def test_what_is_saved_encodes_as_what_was_trained(name, small_pretrained, tmp_path):
    """Prevents an embedding that needs a head, a queue or a second encoder that is not saved."""
    method = small(name, small_pretrained)
    method.encoder.save_pretrained(tmp_path / "encoder")
    again = SentenceEncoder.from_pretrained(tmp_path / "encoder")
    torch.testing.assert_close(again.encode(SENTENCES), method.encoder.encode(SENTENCES))


def test_a_shared_term_is_summed_over_the_towers(towers, batch):
    """Prevents a term of another paper from seeing one tower of a twin twice."""
    terms = {"nce": 1, "off_info": 1, "dcl": 0.1, "barlow": {"artificial_rows": 3}}
    method = build("jtcse", towers, terms=terms)
    losses = method.losses(batch, HEADS)
    views = [
        tower(**batch).last_hidden_state[:, 0].unflatten(0, (2, -1))
        for tower in method.towers.values()
    ]
    expected = {
        "nce": sum(info_nce(*pair) for pair in views),
        "off_info": sum(off_dropout_info_nce(*pair, pair[0]) for pair in views),
        "dcl": 0.1 * sum(dimension_contrast(*pair) for pair in views),
        "barlow": sum(
            barlow_twins(*pair, artificial_rows=3, generator=HEADS.generator()) for pair in views
        ),
    }
    assert list(losses) == list(terms)
    for term, value in expected.items():
        torch.testing.assert_close(losses[term], value)


@pytest.mark.parametrize("name", ["tncse", "jtcse"])
def test_every_shared_term_trains_both_towers_of_a_twin(towers, batch, name):
    """Prevents a shared term that reaches one tower only."""
    method = build(name, towers, terms={"nce": 1, "off_info": 1, "dcl": 0.1, "barlow": 1})
    total = sum(method.losses(batch, HEADS).values())
    total.backward()
    assert total.isfinite()
    words = [tower.embeddings.word_embeddings.weight.grad for tower in method.towers.values()]
    assert all(gradient.abs().sum() > 0 for gradient in words)


@pytest.mark.parametrize("name", ["simcse", "tncse", "jtcse"])
def test_equal_texts_of_a_batch_are_no_negatives(towers, batch, name):
    """Prevents a method from dropping what the collator says of duplicates."""
    method = build(name, towers)
    all_differ = method.losses({**batch, "text_hash": torch.arange(4)}, HEADS)
    two_alike = method.losses({**batch, "text_hash": torch.tensor([0, 1, 0, 2])}, HEADS)
    for term, value in method.losses(batch, HEADS).items():
        torch.testing.assert_close(all_differ[term], value)
        assert (two_alike[term] < value) == (term != "ictm")
