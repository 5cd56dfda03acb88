"""The methods: which terms they sum, over which streams, and what one switch of the ledger changes."""

import itertools
from collections import Counter

import pytest
import torch

from cselab.errors import ModelError, SettingsError
from cselab.losses import icnce, ictm, info_nce
from cselab.methods import JTCSE, Method, SimCSE, StepContext, base, create, register
from cselab.models import SentenceEncoder
from cselab.settings import Settings

SENTENCES = ["a man is playing guitar .", "the dog", "the big red ball was under the table .", "a cat is sleeping"]
HEADS, TAILS = StepContext(seed=0, step=0, coin=True), StepContext(seed=0, step=0, coin=False)


@pytest.fixture(scope="module")
def towers(tmp_path_factory, make_bert, word_tokenizer):
    """Two saved encoders with different weights."""
    folders = [tmp_path_factory.mktemp("towers") / name for name in ("i", "ii")]
    for seed, folder in enumerate(folders, 1):
        SentenceEncoder(make_bert(seed), word_tokenizer).save_pretrained(folder)
    return [str(folder) for folder in folders]


@pytest.fixture
def batch(word_tokenizer):
    return dict(word_tokenizer(2 * SENTENCES, padding=True, return_tensors="pt", return_token_type_ids=False))


def build(name, towers, **settings):
    return create(name, Settings.of("tiny", **{"caels": 2, **settings}), towers).eval()


def streams(method, batch):
    """The twin's outputs as (2, N, d) views: own [CLS], pooled and cross of tower I and II."""
    out = method.encoder(**batch)
    return [None if x is None else x.unflatten(0, (2, -1)) for x in out]


# ------------------------------------------------------------------------------------------- the terms


def test_tncse_sums_each_towers_infonce_and_the_two_terms_between_them(towers, batch):
    """Prevents a term from reading the wrong stream, the wrong tower or one view twice."""
    method = build("tncse", towers)
    cls_i, cls_ii, pooled_i, pooled_ii, *cross = streams(method, batch)
    terms = method.losses(batch, TAILS)
    assert cross == [None, None]
    assert list(terms) == ["nce", "icnce", "ictm"]
    torch.testing.assert_close(terms["nce"], info_nce(*cls_i) + info_nce(*cls_ii))
    torch.testing.assert_close(terms["icnce"], icnce(cls_i, cls_ii))
    torch.testing.assert_close(terms["ictm"], ictm(cls_i, cls_ii, pooled_i, pooled_ii))


@pytest.mark.parametrize("coin", [HEADS, TAILS])
def test_jtcse_one_coin_turns_both_streams(towers, batch, coin):
    """Prevents the cross streams from being tossed for apart from the towers' own (Eq. 12)."""
    method = build("jtcse", towers)
    cls_i, cls_ii, _, _, cross_i, cross_ii = streams(method, batch)
    expected = {
        HEADS: icnce(cls_i, cls_ii) + icnce(cross_i, cross_ii),
        TAILS: icnce(cls_ii, cls_i) + icnce(cross_ii, cross_i),
    }[coin]
    torch.testing.assert_close(method.losses(batch, coin)["icnce"], expected)
    assert not torch.isclose(icnce(cls_i, cls_ii), icnce(cls_ii, cls_i))  # the order does matter here


def test_jtcse_without_caels_has_no_cross_stream(towers, batch):
    method = build("jtcse", towers, caels=0)
    cls_i, cls_ii, _, _, *cross = streams(method, batch)
    assert method.encoder.cael == ()
    assert cross == [None, None]
    torch.testing.assert_close(method.losses(batch, HEADS)["icnce"], icnce(cls_i, cls_ii))


@pytest.mark.parametrize("terms", [("nce",), ("nce", "ictm"), ("icnce",)])
def test_an_ablation_is_a_tuple_of_terms(towers, batch, terms):
    """Prevents a dropped term from being summed, a kept one from changing (JTCSE Table X), and vectors nobody reads."""
    full = build("jtcse", towers).losses(batch, HEADS)
    method = build("jtcse", towers, terms=terms)
    kept = method.losses(batch, HEADS)
    assert tuple(kept) == terms
    read = {name.partition("_")[0] for name in method(batch)}
    assert read == {"cls"} | ({"cross"} if "icnce" in terms else set()) | ({"pooled"} if "ictm" in terms else set())
    for term in terms:
        torch.testing.assert_close(kept[term], full[term])


CHANGES = {"info_nce_layout": "nce", "icnce_candidates": "icnce", "modulus": "ictm"}


@pytest.mark.parametrize("row", sorted(CHANGES))
def test_a_row_of_the_ledger_changes_its_own_term_only(towers, batch, row):
    """Prevents a switch that does nothing, and one that turns on a neighbour too."""
    paper = build("jtcse", towers).losses(batch, HEADS)
    released = build("jtcse", towers, released_rows=row).losses(batch, HEADS)
    changed = {term for term in paper if not torch.isclose(paper[term], released[term])}
    assert changed == {CHANGES[row]}


def test_simcse_is_infonce_of_the_two_views_through_its_training_head(towers, batch):
    method = build("simcse", towers[:1], head="mlp_train_only")
    views = method.head(method.encoder(batch)).unflatten(0, (2, -1))
    torch.testing.assert_close(method.losses(batch, HEADS)["nce"], info_nce(*views))
    torch.testing.assert_close(method.embed(batch), method.encoder(batch))  # the head stays behind


@pytest.mark.parametrize("name", ["simcse", "tncse", "jtcse"])
def test_equal_texts_of_a_batch_are_no_negatives(towers, batch, name):
    """Prevents a method from dropping what the collator says of duplicates."""
    method = build(name, towers[: 1 if name == "simcse" else 2])
    all_differ = method.losses({**batch, "text_hash": torch.arange(4)}, HEADS)
    two_alike = method.losses({**batch, "text_hash": torch.tensor([0, 1, 0, 2])}, HEADS)
    for term, value in method.losses(batch, HEADS).items():
        torch.testing.assert_close(all_differ[term], value)
        assert (two_alike[term] < value) == (term != "ictm")


# ------------------------------------------------------------------------------------------- the build


def test_caels_are_spread_evenly_and_must_divide_the_depth(towers):
    assert build("jtcse", towers, caels=2).encoder.cael == (2, 4)
    with pytest.raises(SettingsError, match=r"caels=3 does not divide the 4 layers .* use 0 or one of \[1, 2, 4\]"):
        build("jtcse", towers, caels=3)


def test_each_tower_keeps_its_own_weights(towers, batch):
    """Prevents tower II from being loaded from tower I's folder."""
    method = build("jtcse", towers)
    for folder, tower in zip(towers, method.towers.values(), strict=True):
        alone = SentenceEncoder.from_pretrained(folder).eval()
        torch.testing.assert_close(tower(**batch).last_hidden_state[:, 0], alone(batch))


def test_the_modulus_term_needs_trained_poolers(tmp_path, make_bert, word_tokenizer):
    """Prevents the loss from reading a pooler that nobody trained."""
    backbone = make_bert(1)
    backbone.pooler = None
    SentenceEncoder(backbone, word_tokenizer).save_pretrained(tmp_path / "bare")
    bare = [str(tmp_path / "bare")] * 2
    with pytest.raises(ModelError, match="has no trained pooler.*leave the term out"):
        build("tncse", bare)
    assert build("tncse", bare, terms=("nce", "icnce")).terms == {"nce": 1, "icnce": 1}


def test_dropout_comes_from_the_settings(towers):
    method = build("simcse", towers[:1], dropout=0.25)
    assert {m.p for m in method.encoder.modules() if isinstance(m, torch.nn.Dropout)} == {0.25}


def test_unknown_method_and_wrong_number_of_towers(towers):
    with pytest.raises(SettingsError, match="unknown method 'jtcs'; did you mean 'jtcse'"):
        build("jtcs", towers)
    with pytest.raises(SettingsError, match="'jtcse' has 2 towers .* got 1"):
        build("jtcse", towers[:1])


def test_a_users_own_method_is_registered_by_one_decorator(towers, batch, monkeypatch):
    monkeypatch.setattr(base, "_REGISTRY", dict(base._REGISTRY))

    @register("only_alignment")
    class OnlyAlignment(SimCSE):
        def compare(self, vectors, context, ids=None):
            a, b = vectors["sentence"]
            return {"alignment": (a - b).square().sum(-1).mean()}

    method = build("only_alignment", towers[:1])
    assert isinstance(method, Method)
    assert method.losses(batch, HEADS)["alignment"].item() == pytest.approx(0, abs=1e-9)  # no dropout, equal views


# ------------------------------------------------------------------------------------------- the coin


def test_the_coin_is_fair_and_depends_on_seed_and_step_alone():
    """Prevents a coin that a resumed run, another process or an extra random draw would toss differently."""
    tosses = [StepContext.at(42, step).coin for step in range(4000)]
    torch.manual_seed(1)
    assert tosses == [StepContext.at(42, step).coin for step in range(4000)]
    assert 1850 < sum(tosses) < 2150
    assert tosses[:64] != [StepContext.at(43, step).coin for step in range(64)]
    pairs = Counter(itertools.pairwise(tosses))
    assert min(pairs.values()) > 850  # nor does one toss tell the next


def test_jtcse_is_the_registered_class(towers):
    assert type(build("jtcse", towers)) is JTCSE


def test_the_modulus_loss_can_read_the_last_hidden_state(towers, batch):
    """Prevents the LayerNorm study (TNCSE Figure 5) from constraining the pooler's output after all."""
    method = build("tncse", towers, modulus_on="cls", layer_norms_removed=2)
    cls_i, cls_ii, _pooled_i, *_ = streams(method, batch)
    vectors = method(batch)
    assert "pooled_i" not in vectors
    torch.testing.assert_close(method.compare(vectors, TAILS)["ictm"], ictm(cls_i, cls_ii, cls_i, cls_ii))
    for tower in method.towers.values():
        kinds = [type(layer.output.LayerNorm).__name__ for layer in tower.encoder.layer]
        assert kinds == ["LayerNorm", "LayerNorm", "Identity", "Identity"]
    with pytest.raises(ModelError, match="cannot remove the LayerNorms of the last 9 layers; the model has 4"):
        build("tncse", towers, layer_norms_removed=9)
