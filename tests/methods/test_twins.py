"""TNCSE and JTCSE: which terms they sum, over which streams, and what one setting changes."""

import pytest
import torch
from build_method import build
from method_helpers import HEADS, TAILS

from cselab.errors import ModelError, SettingsError
from cselab.losses import icnce, ictm, info_nce
from cselab.methods.tncse import RELEASED_LOSSES
from cselab.models import SentenceEncoder


def streams(method, batch):
    """The twin's outputs as (2, N, d) views: own [CLS], pooled and cross of tower I and II."""
    return [None if x is None else x.unflatten(0, (2, -1)) for x in method.encoder(**batch)]


def test_tncse_sums_each_towers_infonce_and_the_two_terms_between_them(towers, batch):
    """Prevents a term that reads the wrong stream, the wrong tower, or one view twice."""
    method = build("tncse", towers)
    cls_i, cls_ii, pooled_i, pooled_ii, *cross = streams(method, batch)
    terms = method.losses(batch, TAILS)
    assert cross == [None, None]
    assert list(terms) == ["nce", "icnce", "ictm"]
    torch.testing.assert_close(terms["nce"], info_nce(*cls_i) + info_nce(*cls_ii))
    torch.testing.assert_close(terms["icnce"], icnce(cls_i, cls_ii))
    torch.testing.assert_close(terms["ictm"], ictm(cls_i, cls_ii, pooled_i, pooled_ii))


def test_a_head_stands_on_the_terms_inside_a_tower_alone(towers, batch):
    """Prevents ICNCE and ICTM of a head that inference drops, and one head for both towers."""
    method = build("tncse", towers, head="mlp_train_only")
    cls_i, cls_ii, pooled_i, pooled_ii, *_ = streams(method, batch)
    terms = method.losses(batch, TAILS)
    head_i, head_ii = method.heads
    inside = info_nce(*head_i(cls_i)) + info_nce(*head_ii(cls_ii))
    torch.testing.assert_close(terms["nce"], inside)
    torch.testing.assert_close(terms["icnce"], icnce(cls_i, cls_ii))
    torch.testing.assert_close(terms["ictm"], ictm(cls_i, cls_ii, pooled_i, pooled_ii))
    assert not torch.equal(head_i[0].weight, head_ii[0].weight)


@pytest.mark.parametrize("coin", [HEADS, TAILS])
def test_one_coin_decides_the_anchor_of_both_streams(towers, batch, coin):
    """Prevents a coin for the cross streams apart from the one of the towers' own (Eq. 12)."""
    method = build("jtcse", towers)
    cls_i, cls_ii, _, _, cross_i, cross_ii = streams(method, batch)
    expected = {
        HEADS: icnce(cls_i, cls_ii) + icnce(cross_i, cross_ii),
        TAILS: icnce(cls_ii, cls_i) + icnce(cross_ii, cross_i),
    }[coin]
    torch.testing.assert_close(method.losses(batch, coin)["icnce"], expected)
    assert not torch.isclose(icnce(cls_i, cls_ii), icnce(cls_ii, cls_i))  # so the order matters


def test_without_caels_the_cross_term_is_absent(towers, batch):
    """Prevents a cross stream of nothing from adding to the loss."""
    method = build("jtcse", towers, caels=0)
    cls_i, cls_ii, _, _, *cross = streams(method, batch)
    assert (method.encoder.cael, cross) == ((), [None, None])
    torch.testing.assert_close(method.losses(batch, HEADS)["icnce"], icnce(cls_i, cls_ii))


@pytest.mark.parametrize("terms", [["nce"], ["nce", "ictm"], ["icnce"]])
def test_an_ablation_leaves_terms_out_and_changes_no_other(towers, batch, terms):
    """Prevents a dropped term from being summed, a kept one from changing (JTCSE Table X), and
    vectors that nothing reads."""
    full = build("jtcse", towers).losses(batch, HEADS)
    method = build("jtcse", towers, terms=terms)
    kept = method.losses(batch, HEADS)
    assert list(kept) == terms
    read = {name.partition("_")[0] for name in method(batch).tensors()}
    expected = {"icnce": {"cls", "cross"}, "ictm": {"cls", "pooled"}, "nce": {"cls"}}
    assert read == set().union(*(expected[term] for term in terms))
    for term in terms:
        torch.testing.assert_close(kept[term], full[term])


@pytest.mark.parametrize("path", sorted(RELEASED_LOSSES))
def test_a_released_variant_changes_its_own_term_only(towers, batch, path):
    """Prevents a switch that does nothing, and one that turns on a neighbour too."""
    paper = build("jtcse", towers).losses(batch, HEADS)
    released = build("jtcse", towers, **{path: RELEASED_LOSSES[path]}).losses(batch, HEADS)
    changed = [name for name in paper if not torch.isclose(paper[name], released[name])]
    assert changed == [path.split(".")[1]]


def test_the_temperature_of_stage_two_is_not_the_towers(towers, batch):
    """Prevents one number for both stages, whose change in one would be a change in the other."""
    paper, stage_one = build("tncse", towers), build("tncse", towers, **{"towers.temperature": 0.5})
    assert paper.losses(batch, HEADS) == stage_one.losses(batch, HEADS)
    stage_two = build("tncse", towers, temperature=0.5)
    cls_i, cls_ii, *_ = streams(stage_two, batch)
    expected = info_nce(*cls_i, temperature=0.5) + info_nce(*cls_ii, temperature=0.5)
    torch.testing.assert_close(stage_two.losses(batch, HEADS)["nce"], expected)
    assert {tower.temperature for tower in stage_two.settings.towers} == {0.05}


def test_the_norm_constraint_can_be_measured_on_cls(towers, batch):
    """Prevents the LayerNorm study (TNCSE Figure 5) from constraining the pooler's output after
    all."""
    changes = {"terms.ictm.measured_on": "cls", "layer_norms_removed": 2}
    method = build("tncse", towers, **changes)
    cls_i, cls_ii, *_ = streams(method, batch)
    outputs = method(batch)
    assert outputs.pooled_i is None
    expected = ictm(cls_i, cls_ii, cls_i, cls_ii)
    torch.testing.assert_close(method.compare(outputs, TAILS)["ictm"], expected)
    for tower in method.towers.values():
        kinds = [type(layer.output.LayerNorm).__name__ for layer in tower.encoder.layer]
        assert kinds == ["LayerNorm", "LayerNorm", "Identity", "Identity"]
    with pytest.raises(ModelError, match="LayerNorms of the last 9 layers; the model has 4"):
        build("tncse", towers, layer_norms_removed=9)


def test_caels_are_spread_evenly_and_must_divide_the_depth(towers):
    """Prevents CAELs at other layers than the paper's, every second of the depth."""
    assert build("jtcse", towers, caels=2).encoder.cael == (2, 4)
    message = r"caels=3 does not divide the 4 layers .* use 0 or one of \[1, 2, 4\]"
    with pytest.raises(SettingsError, match=message):
        build("jtcse", towers, caels=3)


def test_each_tower_has_the_weights_of_its_folder(towers, batch):
    """Prevents tower II from being loaded from tower I's folder."""
    method = build("jtcse", towers)
    for folder, tower in zip(towers, method.towers.values(), strict=True):
        alone = SentenceEncoder.from_pretrained(folder).eval()
        torch.testing.assert_close(tower(**batch).last_hidden_state[:, 0], alone.embed(batch))


def test_the_norm_constraint_needs_trained_poolers(tmp_path, make_bert, word_tokenizer):
    """Prevents a loss that reads a pooler that nobody trained."""
    backbone = make_bert(1)
    backbone.pooler = None
    SentenceEncoder(backbone, word_tokenizer).save_pretrained(tmp_path / "bare")
    bare = [str(tmp_path / "bare")] * 2
    with pytest.raises(ModelError, match="has no trained pooler.*leave the term out"):
        build("tncse", bare)
    assert list(build("tncse", bare, terms=["nce", "icnce"]).terms) == ["nce", "icnce"]
    assert build("tncse", bare, **{"terms.ictm.measured_on": "cls"}).towers["i"].pooler is None


def test_one_tower_with_the_norm_constraint(towers, batch):
    """Prevents the pooler and [CLS] from changing places, and each pair from counting twice (TNCSE
    Table 5)."""
    method = build("tncse_single", towers, dropout=0.2).train()
    outputs = method(batch)
    h, p = outputs.sentence, outputs.extra
    terms = method.compare(outputs, HEADS)
    torch.testing.assert_close(terms["nce"], info_nce(*h))
    cosine = torch.cosine_similarity(h[0], h[1])
    ratio = (p[0] - p[1]).norm(dim=-1) / (p[0].norm(dim=-1) + p[1].norm(dim=-1))
    torch.testing.assert_close(terms["modulus"], (-cosine.log() * ratio).mean())
    assert not torch.allclose(h, p)
    cls = method.eval().encoder.backbone(**batch).last_hidden_state[:, 0]
    torch.testing.assert_close(method.embed(batch), cls)
