"""Terms that any method can add by name, and the methods that are little else."""

import pytest
import torch
from test_methods import HEADS, SENTENCES, batch, build, towers  # noqa: F401  fixtures

from cselab.errors import DataError, SettingsError
from cselab.losses import (
    barlow_twins,
    dimension_contrast,
    ictm,
    info_nce,
    off_dropout_info_nce,
    split_info_nce,
    triplet_info_nce,
)
from cselab.methods import StepContext
from cselab.methods.terms import weights_of

ALL = "nce,off_info,dcl,barlow"


def test_imsimcse_is_its_two_losses_weighted(towers, batch):  # noqa: F811
    """Prevents lambda from being lost, and a clean pass of the second view's text."""
    method = build("imsimcse", towers[:1])
    other = {**batch, "input_ids": batch["input_ids"].clone()}
    other["input_ids"][4:, 1] = 7  # as after a round trip: the second views are other texts
    a, b = method.encoder(other).unflatten(0, (2, -1))
    terms = method.losses(other, HEADS)
    assert list(terms) == ["off_info", "dcl"]
    torch.testing.assert_close(terms["off_info"], off_dropout_info_nce(a, b, a))
    torch.testing.assert_close(terms["dcl"], 0.1 * dimension_contrast(a, b))
    assert not torch.isclose(terms["off_info"], off_dropout_info_nce(a, b, b))


def test_the_clean_pass_disturbs_nothing(towers, batch):  # noqa: F811
    """Prevents the dropout-free pass from drawing random numbers, from having dropout, and from being a constant."""
    plain, clean = (build(name, towers[:1], dropout=0.3).train() for name in ("simcse", "imsimcse"))
    found = []
    for method in (plain, clean):
        torch.manual_seed(1)
        found.append((method(batch), torch.rand(1)))
    (one, after_one), (two, after_two) = found
    torch.testing.assert_close(one["sentence"], two["sentence"])
    assert torch.equal(after_one, after_two)
    expected = clean.eval().encoder({name: rows[:4] for name, rows in batch.items()})
    torch.testing.assert_close(two["sentence_clean"][0], expected)
    assert two["sentence_clean"].requires_grad
    assert clean.train().encoder.training


def test_a_shared_term_is_summed_over_the_towers(towers, batch):  # noqa: F811
    """Prevents a term of another paper from seeing one tower of a twin twice."""
    terms = build("jtcse", towers, terms=ALL, artificial_rows=3).losses(batch, HEADS)
    method = build("jtcse", towers, terms=ALL)
    assert list(terms) == ALL.split(",")
    cls = [tower(**batch).last_hidden_state[:, 0].unflatten(0, (2, -1)) for tower in method.towers.values()]
    torch.testing.assert_close(terms["nce"], sum(info_nce(*views) for views in cls))
    torch.testing.assert_close(terms["off_info"], sum(off_dropout_info_nce(*views, views[0]) for views in cls))
    torch.testing.assert_close(terms["dcl"], 0.1 * sum(dimension_contrast(*views) for views in cls))
    drawn = sum(barlow_twins(*views, artificial_rows=3, generator=HEADS.generator()) for views in cls)
    torch.testing.assert_close(terms["barlow"], drawn)


@pytest.mark.parametrize("name", ["simcse", "imsimcse", "tncse_single", "tncse", "jtcse"])
def test_every_shared_term_runs_on_every_method(towers, batch, name):  # noqa: F811
    """Prevents a term that works for the method it was written for only."""
    method = build(name, towers[: 2 if name in ("tncse", "jtcse") else 1], terms=ALL)
    total = sum(method.losses(batch, HEADS).values())
    total.backward()
    assert total.isfinite()
    assert all(tower.embeddings.word_embeddings.weight.grad.abs().sum() > 0 for tower in method.towers.values())


def test_artificial_rows_follow_the_step_alone():
    """Prevents Barlow's extra rows from differing between processes, or from being the same at every step."""
    draws = [torch.randn(3, generator=StepContext.at(1, step).generator()) for step in (0, 0, 1)]
    torch.manual_seed(9)
    assert torch.equal(draws[0], draws[1])
    assert not torch.equal(draws[0], draws[2])
    assert not torch.equal(draws[0], torch.randn(3, generator=StepContext.at(2, 0).generator()))


def test_names_and_weights():
    assert weights_of(("nce", "dcl:0.5", "ictm"), ("nce", "dcl", "ictm")) == {"nce": 1, "dcl": 0.5, "ictm": 1}
    assert weights_of(("dcl",), ("dcl",)) == {"dcl": 0.1}


@pytest.mark.parametrize(("given", "message"), [
    ("nec", "unknown term 'nec'; did you mean 'nce'"),
    ("nce,nce:2", "'nce' is named twice"),
    ("nce:much", "the weight 'much' of the term 'nce' is no number"),
    ("nce:0", "the weight of the term 'nce' must be above 0, got 0; leave it out"),
    ("nce:nan", "must be above 0, got nan"),
    ("ictm", "unknown term 'ictm'"),
])  # fmt: skip
def test_terms_that_are_none(towers, given, message):  # noqa: F811
    with pytest.raises(SettingsError, match=message):
        build("simcse", towers[:1], terms=given)


def test_one_tower_with_the_norm_constraint(towers, batch):  # noqa: F811
    """Prevents the pooler and [CLS] from changing places, and each pair from counting twice (TNCSE Table 5)."""
    method = build("tncse_single", towers[:1], dropout=0.2).train()
    vectors = method(batch)
    h, p = vectors["sentence"], vectors["pooled"]
    terms = method.compare(vectors, HEADS)
    torch.testing.assert_close(terms["nce"], info_nce(*h))
    cosine = torch.cosine_similarity(h[0], h[1])
    ratio = (p[0] - p[1]).norm(dim=-1) / (p[0].norm(dim=-1) + p[1].norm(dim=-1))
    torch.testing.assert_close(terms["modulus"], (-cosine.log() * ratio).mean())
    assert not torch.allclose(h, p)
    torch.testing.assert_close(method.eval().embed(batch), method.encoder.backbone(**batch).last_hidden_state[:, 0])
    torch.testing.assert_close(ictm(h, h.flip(0), p, p) / 2, terms["modulus"])


def test_supervised_simcse_reads_three_views(towers, word_tokenizer):  # noqa: F811
    """Prevents the contradicting sentences from being taken for the entailed ones."""
    three = dict(
        word_tokenizer(SENTENCES * 2 + SENTENCES[::-1], padding=True, return_tensors="pt", return_token_type_ids=False)
    )
    method = build("simcse_supervised", towers[:1])
    anchor, positive, negative = method.encoder(three).unflatten(0, (3, -1))
    torch.testing.assert_close(method.losses(three, HEADS)["triplet"], triplet_info_nce(anchor, positive, negative))


def test_distillation_is_the_squared_error(towers, batch):  # noqa: F811
    method = build("distillation", towers[:1])
    one = {name: rows[:4] for name, rows in batch.items()} | {"target": torch.randn(4, 32)}
    error = (method.encoder({k: one[k] for k in batch}) - one["target"]).square().mean()
    torch.testing.assert_close(method.losses(one, HEADS)["mse"], error)


def test_rows_without_their_third_view(word_tokenizer):
    from cselab.data import ViewCollator

    with pytest.raises(DataError, match="learns from triplets: rows need input_ids, input_ids_b and input_ids_c"):
        ViewCollator(word_tokenizer, views=3)([{"input_ids": [1], "input_ids_b": [2]}])
    rows = [{"input_ids": [1], "input_ids_b": [2], "input_ids_c": [3, 4], "target": [0.5, 1.0]}]
    assert ViewCollator(word_tokenizer, views=3)(rows)["input_ids"].tolist() == [[1, 0], [2, 0], [3, 4]]
    one = ViewCollator(word_tokenizer, views=1)(rows)
    assert (one["input_ids"].tolist(), one["target"].tolist()) == ([[1]], [[0.5, 1.0]])


@pytest.mark.parametrize("noise_on", ["positives", "negatives"])
@pytest.mark.parametrize("noise", ["more", "less"])
@pytest.mark.parametrize("rows", ["", "noise"])
def test_the_noise_study_is_a_loop_over_pairs(towers, batch, noise_on, noise, rows):  # noqa: F811
    """Prevents noise on the wrong pairs, on one view only (or on both, in the released form), and a mean of one pass."""
    settings = {"noise": noise, "noise_on": noise_on, "noise_passes": 3, "dropout": 0.3, "released_rows": rows}
    method = build("simcse_noise", towers[:1], **settings).train()
    vectors = method(batch)
    torch.manual_seed(0)
    usual, changed = vectors["sentence"], vectors["changed"]
    a, b = changed if noise_on == "positives" else usual
    c, d = changed if noise_on == "negatives" else usual
    total = 0.0
    for i in range(4):
        found = torch.exp(torch.cosine_similarity(a[i], b[i], dim=0) / 0.05)
        others = sum(torch.exp(torch.cosine_similarity(c[i], d[j], dim=0) / 0.05) for j in range(4) if j != i)
        total = total - torch.log(found / (found + others)) / 4
    torch.testing.assert_close(method.compare(vectors, HEADS)["split"], total)
    if noise == "more":
        moved = (changed - usual).abs().amax((1, 2)) > 0
        assert moved.tolist() == [not rows, True]


def test_less_noise_is_less(towers, batch):  # noqa: F811
    """The mean of K passes is nearer to the pass without dropout, in squares K times."""
    method = build("simcse_noise", towers[:1], noise="less", noise_passes=25, dropout=0.1).train()
    clean = build("simcse", towers[:1])(batch)["sentence"]
    torch.manual_seed(0)
    vectors = method(batch)
    one, many = ((vectors[name] - clean).square().mean() for name in ("sentence", "changed"))
    assert many < one / 5


def test_split_info_nce_with_one_pair_is_info_nce():
    torch.manual_seed(0)
    a, b = torch.randn(2, 6, 8, dtype=torch.float64)
    ids = torch.tensor([1, 2, 1, 3, 4, 5])
    torch.testing.assert_close(split_info_nce((a, b), (a, b), ids=ids), info_nce(a, b, ids=ids), atol=1e-10, rtol=0)


@pytest.fixture(scope="module")
def decoder(tmp_path_factory, word_tokenizer):
    from transformers import LlamaConfig, LlamaModel

    config = LlamaConfig(
        vocab_size=len(word_tokenizer), hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=2,
        max_position_embeddings=64, pad_token_id=word_tokenizer.pad_token_id, initializer_range=0.3,
    )  # fmt: skip
    torch.manual_seed(0)
    folder = tmp_path_factory.mktemp("decoder") / "llama"
    LlamaModel(config).save_pretrained(folder)
    word_tokenizer.save_pretrained(folder)
    return str(folder)


@pytest.mark.parametrize("lora_rank", [0, 4])
def test_bellm_is_supervised_info_nce_of_the_representative_words(decoder, word_tokenizer, lora_rank):
    """Eq. 6 by a loop; prevents hard negatives of one's own sentence only, and weights that should rest but train."""
    method = build("bellm", [decoder], lora_rank=lora_rank, prompt="the {sentence} is", decoder_pooling="last_token")
    assert all("lora_" in name for name, p in method.named_parameters() if p.requires_grad) == (lora_rank > 0)
    texts = [f"the {s} is" for s in (SENTENCES + SENTENCES[::-1] + SENTENCES[1:] + SENTENCES[:1])]
    rows = dict(word_tokenizer(texts, padding=True, return_tensors="pt", return_token_type_ids=False))
    x, yes, no = method.encoder(rows).unflatten(0, (3, -1))
    expected = 0.0
    for i in range(4):

        def e(other, i=i):
            return torch.exp(torch.cosine_similarity(x[i], other, dim=0) / 0.05)

        expected -= torch.log(e(yes[i]) / sum(e(yes[j]) + e(no[j]) for j in range(4))) / 4
    torch.testing.assert_close(method.losses(rows, HEADS)["triplet"], expected)
    torch.testing.assert_close(method.encoder.encode(SENTENCES), x.detach())  # what is trained is what is evaluated
