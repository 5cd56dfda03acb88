"""The baselines of the papers' tables: what each adds to SimCSE, and the parts that several share."""

import copy

import pytest
import torch

from cselab.errors import ModelError, SettingsError
from cselab.losses import info_nce
from cselab.methods import Method, StepContext, create
from cselab.methods.base import _REGISTRY
from cselab.methods.masked_lm import filled, load_masked_lm
from cselab.methods.memory import Momentum, Queue
from cselab.methods.prompted import TEMPLATES
from cselab.methods.terms import SHARED
from cselab.models import SentenceEncoder
from cselab.models.encode import evaluating
from cselab.settings import Settings
from cselab.training.large_batch import cached_backward

SENTENCES = ["a man is playing guitar .", "the dog", "the big red ball was under the table .", "a cat is sleeping"]
STEP = StepContext(seed=0, step=500, coin=True)
SINGLES = sorted(name for name, kind in _REGISTRY.items() if kind.views == 2 and len(kind.tower_names) == 1)
NEW = ("arccse", "consert", "diffcse", "esimcse", "infocse", "iscse", "pcl", "promcse", "promptbert", "rankcse", "scd", "sncse",
       "whitenedcse")  # fmt: skip


@pytest.fixture
def batch(word_tokenizer):
    texts = dict(word_tokenizer(2 * SENTENCES, padding=True, return_tensors="pt", return_token_type_ids=False))
    return {**texts, "text_hash": torch.arange(len(SENTENCES))}


def build(name, folder, **settings) -> Method:
    knobs = "whitening_size:2" + (",projection:16" if name == "scd" else "")
    settings = {"dropout": 0.0, "knobs": knobs, **settings}
    return create(name, Settings.of("tiny", **settings), [folder])


def given_to(name, batch):
    return {**batch, "target": torch.randn(len(SENTENCES), 6)} if name == "rankcse" else batch


def test_every_baseline_is_here():
    assert set(NEW) <= set(SINGLES)


@pytest.mark.parametrize("name", SINGLES)
def test_any_shared_term_joins_any_method(name, small_pretrained, batch):
    """Prevents a method whose vectors a term cannot read, a term that is left out without a word, and one that teaches nothing."""
    torch.manual_seed(0)
    own = _REGISTRY[name].default_terms
    terms = (*own, *(term for term in SHARED if term not in {entry.partition(":")[0] for entry in own}))
    method = build(name, small_pretrained, terms=terms, dropout=0.1).train()
    losses = method.losses(given_to(name, batch), STEP)
    assert list(losses) == [entry.partition(":")[0] for entry in terms]
    weights = [p for p in method.encoder.parameters() if p.requires_grad]
    for term, loss in losses.items():
        found = torch.autograd.grad(loss, weights, retain_graph=True, allow_unused=True)
        reached = [gradient for gradient in found if gradient is not None]
        assert all(gradient.isfinite().all() for gradient in reached), term
        hinge = term in ("masking", "soft_negative")  # 0 where the order is right already
        assert hinge or any(gradient.abs().sum() > 0 for gradient in reached), term


@pytest.mark.parametrize("name", SINGLES)
def test_every_vector_is_read_and_survives_being_chunked(name, small_pretrained, batch):
    """Prevents vectors that no term reads, and parts whose first axis is not the sentences'."""
    torch.manual_seed(0)
    method, given = build(name, small_pretrained).train(), given_to(name, batch)
    ids = given.pop("text_hash")
    loss = cached_backward(method, lambda vectors: sum(method.compare(vectors, STEP, ids).values()), given, chunk=2)
    assert loss.isfinite()
    assert any(p.grad is not None and p.grad.abs().sum() > 0 for p in method.encoder.parameters())


@pytest.mark.parametrize("name", NEW)
def test_what_training_adds_is_left_behind(name, small_pretrained, tmp_path):
    """Prevents an embedding that needs a head, a queue or a second encoder: what is saved encodes the same."""
    method = build(name, small_pretrained).eval()
    method.encoder.save_pretrained(tmp_path / "encoder")
    again = SentenceEncoder.from_pretrained(tmp_path / "encoder")
    torch.testing.assert_close(again.encode(SENTENCES), method.encoder.encode(SENTENCES))


def test_knobs_are_named_and_numbers(small_pretrained, batch):
    """Prevents a sweep over a mistyped knob whose every point is the same."""
    plain = build("arccse", small_pretrained, terms="arc", knobs="arc_margin:0").eval().losses(batch, STEP)["arc"]
    torch.testing.assert_close(plain, build("simcse", small_pretrained).eval().losses(batch, STEP)["nce"])
    with pytest.raises(SettingsError, match="unknown knob 'arc_magrin'.*'arc_margin'"):
        build("arccse", small_pretrained, knobs="arc_magrin:3")
    with pytest.raises(SettingsError, match="the value 'x' of the knob 'arc_margin' is no number"):
        build("arccse", small_pretrained, knobs="arc_margin:x")


# ------------------------------------------------------------------------------------------- ESimCSE, and its parts


def test_the_queue_holds_the_last_rows_in_order():
    queue = Queue(5, 1)
    assert queue.rows().shape == (0, 1)
    for start in (0, 2, 4, 6):
        queue.add(torch.tensor([[start], [start + 1.0]]))
    assert queue.rows()[:, 0].tolist() == [3, 4, 5, 6, 7]
    again = Queue(5, 1)
    again.load_state_dict(queue.state_dict())  # as a checkpoint does
    assert torch.equal(again.rows(), queue.rows())


def test_momentum_follows_slowly_and_takes_no_gradient():
    fast = torch.nn.Linear(2, 2)
    slow = Momentum(fast, 0.9)
    before = slow.copy.weight.clone()
    with torch.no_grad():
        fast.weight.add_(1.0)
    slow.update(fast)
    torch.testing.assert_close(slow.copy.weight, 0.9 * before + 0.1 * fast.weight)
    assert not any(p.requires_grad for p in slow.parameters())


def test_esimcse_meets_the_last_two_and_a_half_batches(small_pretrained, batch):
    """Prevents a queue with the batch's own vectors, of the trained encoder, or of another length."""
    method = build("esimcse", small_pretrained, stage1_batch_size=4, augment="same,same").train()
    first = method(batch)
    torch.testing.assert_close(
        method.compare(first, STEP)["queue"], info_nce(*first["sentence"])
    )  # nothing is queued yet
    for _ in range(3):
        method.advance(first)
    assert len(method.last.rows()) == 10
    torch.testing.assert_close(method.last.rows()[-4:], first["momentum"][0])
    expected = info_nce(*first["sentence"], more_negatives=method.last.rows())
    torch.testing.assert_close(method.compare(first, STEP)["queue"], expected)
    assert not first["momentum"].requires_grad


# ------------------------------------------------------------------------------------------- prompts


@pytest.mark.parametrize("kind", ["bert", "roberta"])
def test_a_template_without_a_sentence_is_nothing(kind, make_bert, make_roberta, word_tokenizer, tmp_path):
    """Template denoising of the empty sentence is 0; of a sentence it is not. Prevents positions that are off by one, and RoBERTa's."""
    SentenceEncoder({"bert": make_bert, "roberta": make_roberta}[kind](1), word_tokenizer).save_pretrained(
        tmp_path / "m"
    )
    method = build("promptbert", str(tmp_path / "m")).eval()
    texts = dict(word_tokenizer(["", "a dog"], padding=True, return_tensors="pt", return_token_type_ids=False))
    for template in TEMPLATES:
        empty, said = method.denoised(texts, template)
        torch.testing.assert_close(empty, torch.zeros_like(empty), atol=2e-6, rtol=0)
        assert said.abs().max() > 1e-2


def test_the_prompt_is_the_same_in_training_and_at_inference(small_pretrained, batch):
    """Prevents an encoder that is trained under one template's tokens and asked under another's."""
    method = build("promptbert", small_pretrained).eval()
    framed = method.encoder.prompt.replace("{sentence}", SENTENCES[0])
    one = {key: batch[key][:1] for key in ("input_ids", "attention_mask")}
    ids = method.framed(one)["input_ids"][0]
    assert ids[ids != method.tokens.pad].tolist() == method.encoder.tokenizer(framed)["input_ids"]
    torch.testing.assert_close(method.embed(one), method.encoder.encode(SENTENCES[:1]))
    with pytest.raises(ModelError, match="no mask token"):
        method.encoder(one)


def test_the_clean_vectors_of_a_prompted_method_are_all_of_one_template(small_pretrained, batch):
    """Prevents a second template for half of the negatives of "off_info"."""
    method = build("promptbert", small_pretrained, terms="nce,off_info", dropout=0.1).train()
    clean = method(batch)["sentence_clean"][0]
    with evaluating(method):
        torch.testing.assert_close(clean, method.denoised(method.texts(batch), TEMPLATES[0]))


def test_sncse_reads_the_negated_first_view(small_pretrained, batch):
    from cselab.data.augment import negate

    method = build("sncse", small_pretrained).eval()
    vectors = method(batch)
    expected = method.denoised(negate(method.texts(batch), method.tokens), TEMPLATES[0])
    torch.testing.assert_close(vectors["negated"][0], expected)
    assert "negated" not in build("sncse", small_pretrained, terms="nce").eval()(batch)


def test_promcse_trains_the_prompt_alone(small_pretrained, batch):
    """Prevents an encoder that moves, and weight of old words that do."""
    method = build("promcse", small_pretrained).train()
    before = copy.deepcopy(method.encoder.state_dict())
    optimizer = torch.optim.AdamW([p for p in method.parameters() if p.requires_grad], lr=0.1, weight_decay=0.0)
    sum(method.losses(batch, STEP).values()).backward()
    optimizer.step()
    for name, value in method.encoder.state_dict().items():
        if "word_embeddings" in name:
            assert torch.equal(value[:-16], before[name][:-16])
            assert not torch.isclose(value[-16:], before[name][-16:]).all(dim=1).any()
        else:
            assert torch.equal(value, before[name]), name


# ------------------------------------------------------------------------------------------- masked LMs


def test_only_masked_words_are_filled_and_by_the_model(small_pretrained, batch, word_tokenizer):
    model = load_masked_lm(small_pretrained)
    ids, seen = batch["input_ids"], batch["attention_mask"]
    masked = ids.clone()
    masked[0, 2] = masked[2, 4] = word_tokenizer.mask_token_id
    with torch.no_grad():
        model.cls.predictions.decoder.bias[word_tokenizer.convert_tokens_to_ids("fish")] = 100.0
    edited = filled(model, ids, seen, masked)
    assert [tuple(place) for place in (edited != ids).nonzero().tolist()] == [(0, 2), (2, 4)]
    assert word_tokenizer.convert_ids_to_tokens(edited[0, 2].item()) == "fish"
    assert torch.equal(filled(model, ids, seen, ids), ids)


def test_a_checkpoint_without_a_head_is_refused(small_backbone):
    """Prevents a generator that fills in words from chance."""
    with pytest.raises(ModelError, match="has no masked-LM head"):
        build("diffcse", small_backbone)


def test_diffcse_asks_the_vector_about_every_word_but_cls(small_pretrained, batch):
    """Prevents a detector that can do without the vector, one that trains its generator, and padding that is counted."""
    method = build("diffcse", small_pretrained, terms="rtd:1").train()
    parts = method(batch)["told"]
    words = batch["attention_mask"][: len(SENTENCES)].sum(1) - 1
    assert parts[0, :, 1].tolist() == words.tolist()
    method.compare({"told": parts}, STEP)["rtd"].backward()
    assert any(p.grad is not None and p.grad.abs().sum() > 0 for p in method.encoder.parameters())
    assert all(p.grad is None for p in method.generator.parameters())


def test_infocse_reaches_the_encoder_through_cls_alone(small_pretrained, batch):
    """Prevents a reconstruction that trains the lower layers directly, and extra layers that are the backbone's own."""
    method = build("infocse", small_pretrained, terms="reconstruction:1").train()
    texts = method.texts(batch)
    vectors = method.encoder(texts)
    constant = method.told(texts, vectors.detach())
    constant[..., 0].sum().backward()
    assert all(p.grad is None or not p.grad.any() for p in method.encoder.parameters())
    assert any(p.grad is not None and p.grad.any() for p in method.extra.parameters())
    through = method.told(texts, vectors)
    through[..., 0].sum().backward()
    assert any(p.grad is not None and p.grad.any() for p in method.encoder.parameters())
    hidden = through[0, :, 1]
    assert (hidden >= 1).all()


# ------------------------------------------------------------------------------------------- the others


def test_pcl_contrasts_across_its_peers(small_pretrained, batch):
    """Against its formula; prevents a peer that is compared with itself."""
    torch.manual_seed(0)
    method = build("pcl", small_pretrained).eval()
    vectors = method(batch)
    one, two = vectors["peer_0"], vectors["peer_1"]
    assert one.shape == (5, 4, 32)
    pairs = [(one[0], two[k]) for k in (1, 2, 3, 4)] + [(two[0], one[k]) for k in (1, 2, 3, 4)]
    expected = torch.stack([info_nce(a, b) for a, b in pairs]).mean()
    torch.testing.assert_close(method.compare(vectors, STEP)["peers"], expected)
    torch.testing.assert_close(one[0], method.peer[0](method.encoder(method.texts(batch))))


def test_scds_views_have_their_own_dropout(small_pretrained, batch):
    """Prevents two views under one rate, and a rate that stays when the view is done."""
    method = build("scd", small_pretrained, knobs="low_dropout:0,high_dropout:0.5,projection:16", dropout=0.1).train()
    low, high = method(batch)["sentence"]
    torch.testing.assert_close(low, method.encoder.eval().embed(method.texts(batch)))
    assert (high - low).abs().max() > 0.1
    assert {module.p for module in method.encoder.modules() if isinstance(module, torch.nn.Dropout)} == {0.1}


def test_scds_decorrelation_is_barlow_twins_of_the_projection(small_pretrained, batch):
    """By hand: standardised features, their products over the batch, and the identity. Prevents the vectors' own correlation."""
    method = build("scd", small_pretrained).train()
    vectors = method(batch)
    loss = method.compare(vectors, STEP)["decorrelation"]
    a, b = ((x - x.mean(0)) / x.std(0, correction=0) for x in vectors["projected"])
    total = 0.0
    for c in range(16):
        for d in range(16):
            product = (a[:, c] * b[:, d]).mean()
            total += (1 - product) ** 2 if c == d else 0.013 * product**2
    torch.testing.assert_close(loss, 0.005 * total, rtol=1e-3, atol=1e-5)


def test_iscse_smooths_over_its_nearest_memories(small_pretrained, batch):
    """Against a loop; prevents neighbours by inner product, weights that do not add to 1, and smoothing before there is a memory."""
    method = build("iscse", small_pretrained, knobs="neighbours:2,attention:3,warm_up:10").eval()
    vectors = method(batch)
    a, b = vectors["sentence"]
    torch.testing.assert_close(method.over_neighbours(b), b)
    method.memory.add(torch.randn(6, 32) * torch.tensor([[1.0], [50.0], [1.0], [1.0], [1.0], [1.0]]))
    expected = []
    for row in b:
        cosines = torch.cosine_similarity(row[None], method.memory.rows())
        near = sorted(range(6), key=lambda i: -cosines[i])[:2]
        group = [row, *(method.memory.rows()[i] for i in near)]
        scores = [torch.cosine_similarity(row, other, dim=0) * 3 for other in group]
        weights = torch.stack(scores).exp() / torch.stack(scores).exp().sum()
        expected.append(sum(weight * other for weight, other in zip(weights, group, strict=True)))
    torch.testing.assert_close(method.over_neighbours(b), torch.stack(expected))
    half = method.compare(vectors, StepContext(seed=0, step=5, coin=True))["smoothed"]
    torch.testing.assert_close(half, 0.1 * 0.5 * info_nce(a, torch.stack(expected)))
    method.advance(vectors)
    torch.testing.assert_close(method.memory.rows()[-4:], b)


def test_a_teachers_vector_stays_with_its_sentence_in_chunks(small_pretrained, batch):
    """Prevents targets that are cut as if they were views, so that a sentence learns another's neighbours."""
    method = build("rankcse", small_pretrained, terms="list_net").eval()
    given = given_to("rankcse", batch)
    ids = given.pop("text_hash")
    whole = method.compare(method(given), STEP, ids)["list_net"]
    loss = cached_backward(method, lambda vectors: method.compare(vectors, STEP, ids)["list_net"], given, chunk=2)
    torch.testing.assert_close(loss, whole.detach())


def test_two_teachers_are_one_target():
    """The cosine of unit vectors side by side is the mean of the two cosines: RankCSE's averaged lists."""
    torch.manual_seed(0)
    one, two = (torch.nn.functional.normalize(torch.randn(3, 5), dim=1) for _ in range(2))
    both = torch.cat([one, two], dim=1)
    mean = (one @ one.T + two @ two.T) / 2
    torch.testing.assert_close(torch.cosine_similarity(both[:, None], both[None], dim=-1), mean)


def test_angle_wants_the_entailed_pair_above_the_contradicting(small_pretrained, word_tokenizer):
    """Prevents labels the wrong way round."""
    method = build("angle", small_pretrained).eval()
    anchor = torch.randn(4, 32)
    near, far = anchor + 0.1 * torch.randn(4, 32), torch.randn(4, 32)
    right, wrong = ({"sentence": torch.stack(rows)} for rows in ((anchor, near, far), (anchor, far, near)))
    for term in ("ordered", "angle"):
        assert method.compare(right, STEP)[term] < method.compare(wrong, STEP)[term], term


def test_esimcse_queues_what_its_head_makes(small_pretrained, batch):
    """Prevents anchors after the head that meet negatives before it: two spaces in one loss."""
    method = build("esimcse", small_pretrained, head="mlp_train_only", augment="same,same").eval()
    vectors = method(batch)
    torch.testing.assert_close(vectors["momentum"][0], vectors["sentence"][0].detach())
    before = [p.clone() for p in method.momentum.parameters()]
    with torch.no_grad():
        for p in method.head.parameters():
            p.add_(1.0)
    method.advance(vectors)
    assert any(not torch.equal(a, b) for a, b in zip(before, method.momentum.parameters(), strict=True))


@pytest.mark.parametrize("family", ["bert", "roberta"])
def test_promptbert_evaluates_what_it_trains(family, request, word_tokenizer, tmp_path):
    """Prevents a template whose mask is read elsewhere at inference, as positions of RoBERTa invite: a constant dev score."""
    request.getfixturevalue(f"make_{family}")(1).save_pretrained(tmp_path)
    word_tokenizer.save_pretrained(tmp_path)
    method = build("promptbert", tmp_path).eval()
    trained = method.embed(
        dict(word_tokenizer(SENTENCES, padding=True, return_tensors="pt", return_token_type_ids=False))
    )
    torch.testing.assert_close(method.encoder.encode(SENTENCES), trained, atol=1e-5, rtol=1e-4)
    assert torch.pdist(trained).min() > 1e-3
