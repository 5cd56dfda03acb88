"""Decoders: which layers look ahead, under either attention and either padding; prompts; LoRA;
saving."""

import copy

import pytest
import torch
from build_method import build
from llama_helpers import save_llama

from cselab.errors import ModelError
from cselab.methods import StepContext
from cselab.models import SentenceEncoder, add_lora, load_decoder, merge_lora
from cselab.training.large_batch import cached_backward

DEPTH = 4
SENTENCES = ["the dog", "a man is playing guitar in the park .", "a red ball is under the table"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory, word_tokenizer):
    """A saved Llama of four layers whose two key heads serve four query heads, as in LLaMA 3."""
    folder = tmp_path_factory.mktemp("decoder") / "llama"
    return save_llama(folder, word_tokenizer, layers=DEPTH)


@pytest.fixture(params=["last", "sum", "all"])
def trained(request, folder):
    """Loss and gradients of a decoder by checkpointing, dropout and chunk: a function."""

    def gradients(*, checkpointing, dropout, chunk=0):
        settings = {"lora_rank": 2, "lora_dropout": dropout, "prompt": "the {sentence}"}
        settings |= {"bidirectional": request.param, "pooling": "mean"}
        torch.manual_seed(0)
        method = build("bellm", [folder], gradient_checkpointing=checkpointing, **settings).train()
        assert method.encoder.backbone.layers[0].gradient_checkpointing == checkpointing
        for name, parameter in method.named_parameters():
            if "lora_B" in name:
                torch.nn.init.normal_(parameter, std=0.1)
        batch = dict(tokens(method.encoder.tokenizer, SENTENCES * 3))
        step = StepContext.at(0, 0)

        def loss_of(outputs):
            return sum(method.compare(outputs, step).values())

        torch.manual_seed(1)
        if chunk:
            loss = cached_backward(method, loss_of, batch, chunk=chunk, views=3)
        else:
            loss = loss_of(method(batch))
            loss.backward()
        found = {n: p.grad for n, p in method.named_parameters() if p.grad is not None}
        return {"loss": loss.detach(), "after": torch.rand(1), **found}

    return gradients


@pytest.mark.parametrize("chunk", [0, 2])
@pytest.mark.parametrize("dropout", [0.0, 0.3])
def test_checkpointed_gradients_are_the_same(trained, dropout, chunk):
    """Prevents a layer that is computed again with other dropout or another mask, also by cached
    gradients, and a random state that moves further than without."""
    plain, checkpointed = (
        trained(checkpointing=on, dropout=dropout, chunk=chunk) for on in (False, True)
    )
    assert plain.keys() == checkpointed.keys()
    assert len(plain) == 2 + 2 * 7 * DEPTH
    for name, value in plain.items():
        torch.testing.assert_close(checkpointed[name], value, atol=1e-6, rtol=1e-6)


def tokens(tokenizer, sentences=SENTENCES, side="right"):
    tokenizer.padding_side = side
    return tokenizer(sentences, padding=True, return_tensors="pt", return_token_type_ids=False)


def states(model, batch):
    with torch.no_grad():
        return model(**batch, output_hidden_states=True).hidden_states


@pytest.mark.parametrize("how", ["none", "last", 2, "all", "addition", "sum"])
@pytest.mark.parametrize("pooling", ["last_token", "mean"])
def test_padding_on_either_side_gives_the_same_embedding(folder, how, pooling):
    """Prevents padding from being attended to, and the last token from being looked for at the
    wrong end."""
    found = []
    for attention in ("sdpa", "eager"):
        model, tokenizer = load_decoder(folder, bidirectional=how, attn_implementation=attention)
        encoder = SentenceEncoder(model, tokenizer, pooling=pooling)
        with torch.no_grad():
            found += [
                encoder.embed(dict(tokens(tokenizer, side=side))) for side in ("right", "left")
            ]
            found.append(
                torch.cat([encoder.embed(dict(tokens(tokenizer, [one]))) for one in SENTENCES])
            )
    for other in found[1:]:
        torch.testing.assert_close(other, found[0], atol=2e-5, rtol=1e-4)


def test_the_last_token_reads_everything_under_either_mask(folder):
    """What the paper does not say: with its pooling the last layer's mask changes neither embedding
    nor gradient."""
    found = []
    for how in ("none", "last"):
        model, tokenizer = load_decoder(folder, bidirectional=how, dtype=torch.float64)
        encoder = SentenceEncoder(model, tokenizer, pooling="last_token")
        embedding = encoder.embed(dict(tokens(tokenizer)))
        embedding.square().sum().backward()
        found.append([embedding, *(p.grad for p in model.parameters() if p.grad is not None)])
    for one, other in zip(*found, strict=True):
        torch.testing.assert_close(one, other, atol=1e-9, rtol=1e-9)
    last, tokenizer = load_decoder(folder, bidirectional="last")
    none, _ = load_decoder(folder, bidirectional="none")
    means = [
        SentenceEncoder(model, tokenizer, pooling="mean").encode(SENTENCES)
        for model in (last, none)
    ]
    assert not torch.allclose(*means, atol=1e-3)


@pytest.mark.parametrize("how", ["last", 2, "addition", "sum"])
def test_a_saved_decoder_comes_back_as_it_was(folder, tmp_path, how):
    """Prevents a reload that is causal again, and a prompt that is lost or not applied."""
    model, tokenizer = load_decoder(folder, bidirectional=how)
    encoder = SentenceEncoder(model, tokenizer, pooling="mean", prompt="the {sentence} is the")
    expected = encoder.encode(SENTENCES)
    encoder.save_pretrained(tmp_path / "saved")
    again = SentenceEncoder.from_pretrained(tmp_path / "saved")
    assert (again.prompt, again.pooling) == ("the {sentence} is the", "mean")
    torch.testing.assert_close(again.encode(SENTENCES), expected)
    by_hand = SentenceEncoder(model, tokenizer, pooling="mean")
    torch.testing.assert_close(by_hand.encode([f"the {s} is the" for s in SENTENCES]), expected)
    if how == "addition":
        with pytest.raises(ModelError, match="has an added layer already"):
            load_decoder(tmp_path / "saved", bidirectional="all")
    else:
        batch = tokens(tokenizer)
        found, expected = (
            states(load_decoder(path, bidirectional="all")[0], batch)[-1]
            for path in (tmp_path / "saved", folder)
        )
        torch.testing.assert_close(found, expected)
    with pytest.raises(ModelError, match=r"bidirectional=5: the decoder has 4 layers"):
        load_decoder(folder, bidirectional=5)
    for wrong in ({"bidirectional": "lst"}, {"bidirectional": "last", "padding": "unmaskd"}):
        with pytest.raises(ModelError, match="did you mean '(last|unmasked)'"):
            load_decoder(folder, **wrong)


def test_a_copy_of_an_opened_decoder_is_its_own(folder):
    """Prevents a copy (a checkpoint's, a teacher's) from masking by the original's batch."""
    model, tokenizer = load_decoder(folder, bidirectional="all")
    copied = copy.deepcopy(model)
    batch, short = tokens(tokenizer), tokens(tokenizer, SENTENCES[:1])
    expected = states(model, batch)[-1]
    states(copied, short)
    assert torch.equal(states(copied, batch)[-1], expected)


def test_lora_trains_little_and_merges_exactly(folder):
    """Prevents adapters that are saved but not applied, base weights that train, and a merge that
    changes the model."""
    model, tokenizer = load_decoder(folder, bidirectional="last")
    encoder = SentenceEncoder(model, tokenizer, pooling="mean")
    start = encoder.encode(SENTENCES)
    names = {name for name, _ in model.named_parameters()}
    add_lora(model, rank=2, alpha=4.0, dropout=0.0)
    trained = {name for name, p in model.named_parameters() if p.requires_grad}
    assert all("lora_" in name for name in trained)
    assert len(trained) == 2 * 7 * DEPTH  # q, k, v, o, gate, up, down
    torch.testing.assert_close(encoder.encode(SENTENCES), start)  # B starts at 0
    for name, p in model.named_parameters():
        if "lora_B" in name:
            torch.nn.init.normal_(p, std=0.1)
    changed = encoder.encode(SENTENCES)
    assert not torch.allclose(changed, start, atol=1e-3)
    merge_lora(model)
    assert {name for name, _ in model.named_parameters()} == names
    torch.testing.assert_close(encoder.encode(SENTENCES), changed, atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("attention", ["sdpa", "eager"])
@pytest.mark.parametrize("padding", ["masked", "unmasked"])
def test_the_sum_is_the_causal_model_plus_the_one_with_an_open_last_layer(
    folder, attention, padding
):
    """BeLLM Eq. 5; prevents a second run of the layer under the first one's mask or flag, and one
    more hidden state. The sentence token's state is twice the causal one where padding is masked.
    """
    options = {"padding": padding, "attn_implementation": attention}
    summed, tokenizer = load_decoder(folder, bidirectional="sum", **options)
    for sentences in (SENTENCES, SENTENCES[1:2]):  # padded, and not
        batch = tokens(tokenizer, sentences)
        none, last = (
            states(load_decoder(folder, bidirectional=how, **options)[0], batch)
            for how in ("none", "last")
        )
        found = states(summed, batch)
        assert len(found) == DEPTH + 1
        real = batch["attention_mask"].bool()
        expected = (none[-1] + last[-1])[real]
        torch.testing.assert_close(found[-1][real], expected, atol=1e-5, rtol=1e-4)
        copied = states(copy.deepcopy(summed), batch)[-1]
        assert torch.equal(copied, found[-1])
        if padding == "masked":
            pooled = [
                SentenceEncoder(model, tokenizer, pooling="last_token").embed(dict(batch))
                for model in (summed, load_decoder(folder)[0])
            ]
            torch.testing.assert_close(pooled[0], 2 * pooled[1], atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("attention", ["sdpa", "eager"])
@pytest.mark.parametrize("how", ["last", "addition"])
def test_unmasked_padding_is_a_mask_of_zeros(folder, attention, how):
    """Prevents a released preset that still masks something: billm's opened layer gets zeros for a
    mask. The layers below keep theirs, causal and with padding masked."""
    opened, tokenizer = load_decoder(
        folder, bidirectional=how, padding="unmasked", attn_implementation=attention
    )
    plain, _ = load_decoder(folder, attn_implementation="eager")
    batch = tokens(tokenizer)
    *below, last = states(plain, batch)
    found = states(opened, batch)
    for one, other in zip(below, found, strict=False):
        torch.testing.assert_close(one, other, atol=1e-5, rtol=1e-4)
    x = last if how == "addition" else below[-1]  # the last state is normed; the layer reads it raw
    if how == "addition":
        hook = {}
        plain.norm.register_forward_pre_hook(lambda module, args: hook.update(x=args[0]))
        states(plain, batch)
        x = hook["x"]
    length = x.shape[1]
    zeros = torch.zeros(len(x), 1, length, length)
    rotary = plain.rotary_emb(x, torch.arange(length)[None])
    with torch.no_grad():
        by_hand = plain.norm(plain.layers[-1](x, attention_mask=zeros, position_embeddings=rotary))
    torch.testing.assert_close(found[-1], by_hand, atol=1e-5, rtol=1e-4)


def test_unmasked_padding_makes_the_last_token_read_its_batch(folder, tmp_path):
    """What the released mask costs: a sentence's vector depends on its batch, also after saving and
    loading; unpadded, it is that of the causal mask."""
    vectors = {}
    for padding in ("masked", "unmasked"):
        model, tokenizer = load_decoder(folder, bidirectional="last", padding=padding)
        encoder = SentenceEncoder(model, tokenizer, pooling="last_token")
        encoder.save_pretrained(tmp_path / padding)
        encoder = SentenceEncoder.from_pretrained(tmp_path / padding)
        with torch.no_grad():
            alone = encoder.embed(dict(tokens(tokenizer, SENTENCES[:1])))
            vectors[padding] = alone, encoder.embed(dict(tokens(tokenizer)))[:1]
    causal, tokenizer = load_decoder(folder, bidirectional="none", padding="unmasked")
    with torch.no_grad():
        expected = SentenceEncoder(causal, tokenizer, pooling="last_token").embed(
            dict(tokens(tokenizer, SENTENCES[:1]))
        )
    for alone, _ in vectors.values():
        torch.testing.assert_close(alone, expected, atol=1e-5, rtol=1e-4)
    torch.testing.assert_close(*vectors["masked"], atol=1e-5, rtol=1e-4)
    assert not torch.allclose(*vectors["unmasked"], atol=1e-2)
