"""Every method: any shared term joins it, and its batch can be computed in parts."""

from dataclasses import replace

import pytest
import torch
from build_method import build
from method_helpers import HEADS, TWO_VIEWS, in_training, small_parts

from cselab.losses import barlow_twins, dimension_contrast, info_nce, off_dropout_info_nce
from cselab.methods import registered
from cselab.methods.terms import SHARED
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
    terms = {**{term: {} for term in SHARED}, **registered(name).Config().terms}
    terms["whitened"] = {"group_size": 2}
    method = small(name, small_pretrained, terms=terms, dropout=0.1).train()
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
        return method.compare(outputs, STEP)["reconstruction"]

    assert cached_backward(method, loss_of, batch, chunk=2).isfinite()
    assert method.encoder.backbone.encoder.layer[0].output.dense.weight.grad.any()


@pytest.mark.parametrize("name", TWO_VIEWS)
def test_the_terms_of_a_method_can_be_left_out(name, small_pretrained, batch):
    """Prevents an ablation that fails, or that computes what no term reads any more."""
    method = small(name, small_pretrained, terms=["nce"])
    outputs = method(in_training(name, batch))
    extra = {"extra"} if name in ("rankcse", "esimcse") else set()
    assert outputs.tensors().keys() == {"sentence", *extra}
    assert method.compare(outputs, STEP)["nce"].isfinite()


def test_a_shared_term_is_summed_over_the_towers(towers, batch):
    """Prevents a term of another paper from seeing one tower of a twin twice."""
    terms = {"nce": 1, "off_info": 1, "dcl": 0.1, "barlow": {"artificial_rows": 3}}
    method = build("jtcse", towers, terms=terms)
    losses = method.losses(batch, HEADS)
    towers = [tower(**batch).last_hidden_state[:, 0] for tower in method.towers.values()]
    expected = dict.fromkeys(terms, 0.0)
    for a, b in (rows.unflatten(0, (2, -1)) for rows in towers):
        draws = {"artificial_rows": 3, "generator": HEADS.generator()}
        expected["nce"] += info_nce(a, b)
        expected["off_info"] += off_dropout_info_nce(a, b, a)
        expected["dcl"] += 0.1 * dimension_contrast(a, b)
        expected["barlow"] += barlow_twins(a, b, **draws)
    torch.testing.assert_close(losses, expected)
    assert list(losses) == list(terms)


@pytest.mark.parametrize("name", ["simcse", "tncse", "jtcse"])
def test_equal_texts_of_a_batch_are_no_negatives(towers, batch, name):
    """Prevents a method from dropping what the collator says of duplicates."""
    method = build(name, towers)
    all_differ = method.losses({**batch, "text_hash": torch.arange(4)}, HEADS)
    two_alike = method.losses({**batch, "text_hash": torch.tensor([0, 1, 0, 2])}, HEADS)
    for term, value in method.losses(batch, HEADS).items():
        torch.testing.assert_close(all_differ[term], value)
        assert (two_alike[term] < value) == (term != "ictm")
