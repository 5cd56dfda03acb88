"""Baselines of the papers' tables: what each adds to SimCSE, against its formula."""

import itertools
from dataclasses import replace
from types import SimpleNamespace

import pytest
import torch
from build_method import build
from method_helpers import HEADS, SENTENCES

from cselab.losses import info_nce
from cselab.methods import registered
from cselab.training.large_batch import cached_backward


def test_simcse_is_infonce_of_the_two_views_through_its_training_head(towers, batch):
    """Prevents a head that is left out of the loss, or that stays on at inference."""
    method = build("simcse", towers, head="mlp_train_only")
    views = method.head(method.encoder(**batch)).unflatten(0, (2, -1))
    torch.testing.assert_close(method.losses(batch, HEADS)["nce"], info_nce(*views))
    torch.testing.assert_close(method.embed(batch), method.encoder(**batch))


def test_pcl_contrasts_across_its_peers(towers, batch):
    """Against its formula; prevents a peer that is compared with itself."""
    torch.manual_seed(0)
    method = build("pcl", towers)
    outputs = method(batch)
    one, two = outputs.peer_0, outputs.peer_1
    assert one.shape == (5, 4, 32)
    pairs = [(one[0], two[k]) for k in (1, 2, 3, 4)] + [(two[0], one[k]) for k in (1, 2, 3, 4)]
    expected = torch.stack([info_nce(a, b) for a, b in pairs]).mean()
    torch.testing.assert_close(method.compare(outputs, HEADS)["peers"], expected)
    first = method.peer[0](method.encoder(**method.texts(batch)))
    torch.testing.assert_close(one[0], first)


def test_scds_views_have_their_own_dropout(towers, batch):
    """Prevents two views under one rate, and a rate that stays when the view is done."""
    rates = {"low_dropout": 0, "high_dropout": 0.5, "dropout": 0.1}
    method = build("scd", towers, projection=16, **rates).train()
    low, high = method(batch).sentence
    torch.testing.assert_close(low, method.encoder.eval().embed(method.texts(batch)))
    assert (high - low).abs().max() > 0.1
    drops = [m for m in method.encoder.modules() if isinstance(m, torch.nn.Dropout)]
    assert {module.p for module in drops} == {0.1}


def test_scds_decorrelation_is_barlow_twins_of_the_projection(towers, batch):
    """By hand: standardised features, their products over the batch, and the identity. Prevents the
    vectors' own correlation."""
    method = build("scd", towers, projection=16, dropout=0).train()
    outputs = method(batch)
    a, b = ((x - x.mean(0)) / x.std(0, correction=0) for x in outputs.extra)
    total = 0.0
    for c, d in itertools.product(range(16), repeat=2):
        product = (a[:, c] * b[:, d]).mean()
        total += (1 - product) ** 2 if c == d else 0.013 * product**2
    loss = method.compare(outputs, HEADS)["decorrelation"]
    torch.testing.assert_close(loss, 0.005 * total, rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize("term", ["list_net", "list_mle"])
def test_a_teachers_vector_stays_with_its_sentence_in_chunks(towers, batch, term):
    """Prevents targets that are cut as if they were views, so that a sentence learns another's
    neighbours."""
    method = build("rankcse", towers, terms=[term])
    rows = {**batch, "target": torch.randn(len(SENTENCES), 6)}
    step = replace(HEADS, ids=torch.arange(len(SENTENCES)))
    whole = method.compare(method(rows), step)[term]

    def loss_of(outputs):
        return method.compare(outputs, step)[term]

    torch.testing.assert_close(cached_backward(method, loss_of, rows, chunk=2), whole.detach())


def test_two_teachers_are_one_target():
    """The cosine of unit vectors side by side is the mean of the two cosines: RankCSE's averaged
    lists. Prevents a longer teacher from outweighing the other."""
    torch.manual_seed(0)
    rows = [torch.randn(3, 5), 100 * torch.randn(3, 7)]
    teachers = [SimpleNamespace(encode=lambda sentences, rows=rows: rows) for rows in rows]
    target = registered("rankcse").targets(teachers)(["a", "b", "c"])
    unit = [torch.nn.functional.normalize(x, dim=1) for x in rows]
    mean = sum(x @ x.T for x in unit) / 2
    cosines = torch.cosine_similarity(target[:, None], target[None], dim=-1)
    torch.testing.assert_close(cosines, mean)


def test_a_student_learns_the_squared_error(towers, batch):
    """Prevents a target that is compared with another sentence's vector, and a sum for a mean."""
    method = build("distilled", towers)
    one = {name: rows[:4] for name, rows in batch.items()}
    target = torch.randn(4, 32)
    error = (method.encoder(**one) - target).square().mean()
    losses = method.losses({**one, "target": target}, HEADS)
    torch.testing.assert_close(losses["mse"], error)
