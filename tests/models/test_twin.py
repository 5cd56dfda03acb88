"""The twin: untouched towers, cross-attention that is what the equation says, no leak from
padding."""

import math

import pytest
import torch
import torch.nn.functional as F
from transformers import AutoModel

from cselab.models import SentenceEncoder, TwinEncoder, cael_positions
from cselab.models.layers import run_tower

SENTENCES = [
    "a man is playing guitar .",
    "the dog",
    "the big red ball was not under the table , in the house .",
]


@pytest.fixture
def batch(word_tokenizer):
    return dict(
        word_tokenizer(SENTENCES, padding=True, return_tensors="pt", return_token_type_ids=False)
    )


@pytest.fixture
def make_twin(make_tower, word_tokenizer):
    def make(*cael, cross_stream="parallel", dtype=torch.float32, **changes):
        towers = (make_tower(seed, **changes).to(dtype) for seed in (1, 2))
        return TwinEncoder(
            *towers, cael=cael, cross_stream=cross_stream, tokenizer=word_tokenizer
        ).eval()

    return make


def test_in_evaluation_each_tower_is_the_stock_model(make_twin, batch):
    """Prevents a twin whose towers differ from what they are without it."""
    twin = make_twin(2, 4)
    with torch.no_grad():
        output = twin(**batch)
        for tower, cls, pooled in zip(twin.backbones, output[:2], output[2:4], strict=True):
            alone = tower(**batch)
            torch.testing.assert_close(cls, alone.last_hidden_state[:, 0])
            torch.testing.assert_close(pooled, alone.pooler_output)


@pytest.mark.parametrize("cross_stream", ["parallel", "last_only"])
def test_in_training_the_cross_stream_moves_no_dropout_mask_of_the_towers(
    make_twin, batch, cross_stream
):
    """Prevents an ablation of the CAELs from changing the towers through the random numbers."""
    twin = make_twin(2, 4, cross_stream=cross_stream).train()
    torch.manual_seed(0)
    output = twin(**batch)
    torch.manual_seed(0)
    for tower, cls, pooled in zip(twin.backbones, output[:2], output[2:4], strict=True):
        alone, _, _ = run_tower(tower, **batch)
        assert torch.equal(cls, alone)
        assert torch.equal(pooled, tower.pooler(alone[:, None]))
    assert output.cross_i is not None
    assert not torch.equal(output.cls_i, twin(**batch).cls_i)  # dropout was on


def test_inference_is_the_sum_of_two_plain_encoders(make_twin, batch):
    """Prevents a mean for the sum, and a cross stream at inference."""
    twin = make_twin(2, 4)
    with torch.no_grad():
        expected = sum(tower(**batch).last_hidden_state[:, 0] for tower in twin.backbones)
        torch.testing.assert_close(twin.embed(batch), expected)
    torch.testing.assert_close(twin.encode(SENTENCES), expected)


def reference_context(layer, other, states, other_states, mask):
    """Eq. of METHODS 4 with loops over sentences, heads and query positions: own Q and K, the other
    tower's V."""
    own, heads = layer.attention.self, layer.attention.self.num_attention_heads
    q, k = own.query(states), own.key(states)
    v = other.attention.self.value(other_states)
    size = q.shape[-1] // heads
    out = torch.zeros_like(q)
    for b in range(q.shape[0]):
        real = [j for j in range(q.shape[1]) if mask[b, j]]
        for h in range(heads):
            cut = slice(h * size, (h + 1) * size)
            for i in range(q.shape[1]):
                scores = torch.stack([q[b, i, cut] @ k[b, j, cut] for j in real]) / math.sqrt(size)
                weights = scores.exp() / scores.exp().sum()
                out[b, i, cut] = sum(w * v[b, j, cut] for w, j in zip(weights, real, strict=True))
    return out


def reference_layer(layer, context, residual):
    """Post-LayerNorm block, written out: LN(residual + O context), then LN(x + W2 gelu(W1 x))."""
    attention, feed = layer.attention.output, layer.output
    x = attention.LayerNorm(residual + attention.dense(context))
    return feed.LayerNorm(x + feed.dense(F.gelu(layer.intermediate.dense(x))))


def reference_cross(twin, batch):
    """The parallel stream from scratch, for both towers."""
    mask = batch["attention_mask"]
    inputs = []
    for tower in twin.backbones:
        states = [tower.embeddings(input_ids=batch["input_ids"])]
        for layer in tower.encoder.layer:
            states.append(
                reference_layer(
                    layer, reference_context(layer, layer, states[-1], states[-1], mask), states[-1]
                )
            )
        inputs.append(states)
    outputs = []
    for a, b in ((0, 1), (1, 0)):
        stream = None
        for j in range(1, max(twin.cael) + 1):
            layer, other = (twin.backbones[t].encoder.layer[j - 1] for t in (a, b))
            if j in twin.cael:
                crossed = reference_context(layer, other, inputs[a][j - 1], inputs[b][j - 1], mask)
                stream = reference_layer(
                    layer, crossed, inputs[a][j - 1] if stream is None else stream
                )
            elif stream is not None:
                stream = reference_layer(
                    layer, reference_context(layer, layer, stream, stream, mask), stream
                )
        outputs.append(stream[:, 0])
    return outputs


@pytest.mark.parametrize("cael", [(4,), (2, 4), (1, 3), (2,), (1, 2, 3, 4)])
def test_the_parallel_stream_equals_a_per_head_reference(make_twin, batch, cael):
    """Among what this catches: values of the wrong tower, residual of the wrong stream, scale by
    width instead of head."""
    twin = make_twin(*cael, dtype=torch.float64)
    with torch.no_grad():
        output = twin(**batch)
        for got, expected in zip(
            (output.cross_i, output.cross_ii), reference_cross(twin, batch), strict=True
        ):
            torch.testing.assert_close(got, expected, rtol=0, atol=1e-10)


def test_fused_adds_the_cross_context_inside_the_towers(make_twin, batch):
    """Against the per-head reference; prevents a context that is added after the projection, or
    states of the layer above."""
    twin = make_twin(2, 4, cross_stream="fused", dtype=torch.float64)
    mask = batch["attention_mask"]
    with torch.no_grad():
        x, y = (tower.embeddings(input_ids=batch["input_ids"]) for tower in twin.backbones)
        for j, (one, two) in enumerate(
            zip(*(tower.encoder.layer for tower in twin.backbones), strict=True), 1
        ):
            own_x, own_y = (
                reference_context(one, one, x, x, mask),
                reference_context(two, two, y, y, mask),
            )
            if j in twin.cael:
                own_x, own_y = (
                    own_x + reference_context(one, two, x, y, mask),
                    own_y + reference_context(two, one, y, x, mask),
                )
            x, y = reference_layer(one, own_x, x), reference_layer(two, own_y, y)
        output = twin(**batch)
        torch.testing.assert_close(output.cls_i, x[:, 0], rtol=0, atol=1e-10)
        torch.testing.assert_close(twin.embed(batch), x[:, 0] + y[:, 0], rtol=0, atol=1e-10)
    assert output.cross_i is None


@pytest.mark.parametrize("every", [1, 2, 4])
def test_last_only_does_not_depend_on_the_number_of_caels(make_twin, batch, every):
    """Every k that divides the depth ends at the last layer, so it equals `parallel` with k =
    depth."""
    with torch.no_grad():
        last_only = make_twin(*cael_positions(4, every), cross_stream="last_only")(**batch)
        single = make_twin(*cael_positions(4, 4))(**batch)
    assert torch.equal(last_only.cross_i, single.cross_i)
    assert torch.equal(last_only.cross_ii, single.cross_ii)


@pytest.mark.parametrize("which", ["cross_i", "cross_ii"])
def test_the_cross_loss_reaches_both_towers(make_twin, batch, which):
    """Own queries and keys, the other's values, and all three of both below the first CAEL."""
    twin = make_twin(2, 4)
    getattr(twin(**batch), which).square().sum().backward()
    for tower in twin.backbones:
        for name in ("query", "key", "value"):
            gradient = getattr(tower.encoder.layer[0].attention.self, name).weight.grad
            assert gradient.abs().sum() > 0, name
    own, other = twin.backbones if which == "cross_i" else twin.backbones[::-1]
    assert own.encoder.layer[3].attention.self.query.weight.grad.abs().sum() > 0
    assert other.encoder.layer[3].attention.self.value.weight.grad.abs().sum() > 0
    assert own.encoder.layer[3].attention.self.value.weight.grad is None


@pytest.mark.parametrize("cross_stream", ["parallel", "fused"])
def test_padding_never_leaks(make_twin, batch, word_tokenizer, cross_stream):
    """Prevents the other tower's padding from being read as values."""
    twin = make_twin(2, 4, cross_stream=cross_stream, dtype=torch.float64)
    with torch.no_grad():
        together = twin(**batch)
        for i, sentence in enumerate(SENTENCES):
            alone = twin(
                **word_tokenizer(sentence, return_tensors="pt", return_token_type_ids=False)
            )
            for a, b in zip(together, alone, strict=True):
                if a is not None:
                    torch.testing.assert_close(a[i : i + 1], b, rtol=0, atol=1e-10)


def test_no_mask_is_a_mask_of_ones(make_twin, batch):
    """Prevents a different path, with other numbers, for unpadded batches."""
    twin = make_twin(2, 4)
    single, ids = SentenceEncoder(twin.tower_i, None), batch["input_ids"][2:]
    with torch.no_grad():
        for a, b in zip(twin(ids), twin(ids, torch.ones_like(ids)), strict=True):
            assert torch.equal(a, b)
        torch.testing.assert_close(single(ids), twin(ids).cls_i)


@pytest.mark.parametrize("which", [0, 1])
def test_at_a_cael_exactly_own_queries_and_keys_and_foreign_values_are_read(
    make_twin, batch, which
):
    """Layer 1 as the only CAEL: nothing below it can carry a gradient to the weights that must not
    take part."""
    twin = make_twin(1)
    twin(**batch)[4 + which].square().sum().backward()
    own, other = (twin.backbones[t].encoder.layer[0].attention.self for t in (which, 1 - which))
    reached = {
        (t, n)
        for t, a in (("own", own), ("other", other))
        for n in ("query", "key", "value")
        if (g := getattr(a, n).weight.grad) is not None and g.abs().sum() > 0
    }
    assert reached == {("own", "query"), ("own", "key"), ("other", "value")}


def test_eager_and_sdpa_attention_agree(make_twin, batch):
    """Prevents a mask that only one kind of attention understands."""
    twin = make_twin(2, 4)
    with torch.no_grad():
        sdpa = twin(**batch)
        for tower in twin.backbones:
            tower.set_attn_implementation("eager")
        eager = twin(**batch)
    for a, b in zip(sdpa, eager, strict=True):
        torch.testing.assert_close(a, b, rtol=0, atol=1e-5)


def test_a_saved_twin_is_the_same_and_its_towers_are_stock_models(make_twin, batch, tmp_path):
    """Prevents towers that change places, a pickle among the files, and a folder that transformers
    cannot open."""
    twin = make_twin(2, 4)
    twin.save_pretrained(tmp_path / "twin")
    again = TwinEncoder.from_pretrained(tmp_path / "twin").eval()
    with torch.no_grad():
        for a, b in zip(twin(**batch), again(**batch), strict=True):
            assert torch.equal(a, b)
        stock = AutoModel.from_pretrained(tmp_path / "twin" / "tower_ii").eval()
        cls = stock(**batch).last_hidden_state[:, 0]
        torch.testing.assert_close(cls, twin(**batch).cls_ii)
    assert (again.cael, again.cross_stream) == ((2, 4), "parallel")
    assert {path.suffix for path in tmp_path.rglob("*") if path.is_file()} <= {
        ".json",
        ".safetensors",
        ".jinja",
    }


def test_cael_positions_end_at_the_last_layer():
    """Prevents positions that count from 0 or begin at the first layer."""
    assert cael_positions(12, 2) == (2, 4, 6, 8, 10, 12)
    assert cael_positions(12, 12) == (12,)
    assert cael_positions(6, 1) == (1, 2, 3, 4, 5, 6)
