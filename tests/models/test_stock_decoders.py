"""Stock decoders of other families than LLaMA: loaded, opened, trained a step, evaluated, saved."""

import json

import pytest
import torch
from transformers import (
    AutoModelForCausalLM,
    GemmaConfig,
    LlamaConfig,
    MistralConfig,
    Qwen2Config,
    Qwen3Config,
)

import cselab
from cselab.models import SentenceEncoder, load_decoder

SENTENCES = ["the dog", "a man is playing guitar in the park .", "a red ball is under the table"]
DEPTH, WINDOW = 3, 3
"""Tokens that a layer of the Mistral-like model reads back."""
FAMILIES = {
    "llama": (LlamaConfig, {"num_key_value_heads": 2}),
    "mistral": (MistralConfig, {"num_key_value_heads": 2, "sliding_window": WINDOW}),
    "qwen2": (Qwen2Config, {"num_key_value_heads": 2, "tie_word_embeddings": True}),
    "qwen3": (Qwen3Config, {"num_key_value_heads": 2, "head_dim": 16}),
    "gemma": (GemmaConfig, {"num_key_value_heads": 1, "head_dim": 16}),
}


@pytest.fixture(scope="module", params=FAMILIES)
def stock(request, tmp_path_factory, word_tokenizer):
    """A folder as the hub has it: a random causal language model with its head, and a tokenizer
    without a padding token."""
    kind, changes = FAMILIES[request.param]
    config = kind(
        vocab_size=len(word_tokenizer) + 8,  # Qwen's have more embeddings than tokens
        hidden_size=32,
        intermediate_size=48,
        num_hidden_layers=DEPTH,
        num_attention_heads=4,
        max_position_embeddings=64,
        initializer_range=0.2,
        **{"pad_token_id": None, "bos_token_id": 2, "eos_token_id": 3, **changes},
    )
    torch.manual_seed(0)
    folder = tmp_path_factory.mktemp(request.param) / "stock"
    AutoModelForCausalLM.from_config(config).save_pretrained(folder)
    word_tokenizer.save_pretrained(folder)
    path = folder / "tokenizer_config.json"
    settings = json.loads(path.read_text())
    settings.pop("pad_token")
    path.write_text(json.dumps({**settings, "eos_token": "[SEP]"}))
    return folder


def states(model, tokenizer, sentences):
    batch = tokenizer(sentences, padding=True, return_tensors="pt", return_token_type_ids=False)
    with torch.no_grad():
        return model(**batch, output_hidden_states=True).hidden_states


@pytest.mark.parametrize("attention", ["sdpa", "eager"])
@pytest.mark.parametrize(
    ("how", "moved"),
    [
        *(("none", set()), ("last", {3}), ("sum", {3}), (2, {2, 3}), ("all", {1, 2, 3})),
        ("addition", {4}),
    ],
)
def test_in_an_open_layer_the_first_token_reads_the_last(stock, attention, how, moved):
    """Prevents a mask that is swapped for all layers, for padded batches alone, or, in a family
    whose mask comes from elsewhere (a sliding window), for none."""
    model, tokenizer = load_decoder(stock, bidirectional=how, attn_implementation=attention)
    plain, _ = load_decoder(stock, attn_implementation=attention)
    assert tokenizer.pad_token is not None
    for batch in (SENTENCES[1:2], SENTENCES[1::-1]):  # alone, and with a shorter one: padded
        ends = [batch[0].replace("park .", "house ."), *batch[1:]]  # one token, near the end
        before, after, causal = (
            states(kind, tokenizer, text)
            for kind, text in ((model, batch), (model, ends), (plain, batch))
        )
        pairs = enumerate(zip(before, after, strict=True))
        changed = {i for i, (a, b) in pairs if not torch.allclose(a[0, 0], b[0, 0], atol=1e-5)}
        assert changed == moved
        below = min(DEPTH, *moved) if moved else DEPTH  # the last state is normed
        assert all(map(torch.equal, before[:below], causal[:below]))
        alone = states(model, tokenizer, batch[-1:])[-1]
        read = before[-1][-1, : alone.shape[1]]  # without the padding, which is masked
        torch.testing.assert_close(read, alone[0], atol=1e-4, rtol=1e-3)


@pytest.mark.parametrize(
    "stock",
    [
        "qwen2",
        *(pytest.param(name, marks=pytest.mark.slow) for name in FAMILIES if name != "qwen2"),
    ],
    indirect=True,
)
def test_a_step_of_training_an_evaluation_and_the_way_to_disk_and_back(
    stock, tmp_path, monkeypatch
):
    """Prevents a family that loads and cannot be trained with LoRA, or whose trained weights, mask
    or prompt are lost on the way to disk."""
    monkeypatch.delenv("CSELAB_DATA", raising=False)
    lab = cselab.open_lab(
        "10_bellm",
        decoder=str(stock),
        triplets=40,
        dev_pairs=20,
        synthetic_pairs=20,
        outputs=str(tmp_path),
        steps=2,
        eval_every=2,
        batch_size=4,
        lora_rank=2,
    )
    trained = lab.train("bellm", padding="unmasked")
    assert trained.fit["history"][-1]["step"] == 2
    report = lab.evaluate({"BeLLM": trained})["BeLLM"]
    assert -100 <= report.average <= 100
    again = cselab.load(trained.folder / "encoder")
    torch.testing.assert_close(again.encode(SENTENCES), trained.encode(SENTENCES))
    assert (again.prompt, again.pooling) == ("representative", "last_token")
    config = again.backbone.config
    assert (config.bidirectional_layers, config.unmasked_padding) == ([3], True)
    untrained = SentenceEncoder(*load_decoder(stock), pooling="last_token", prompt=again.prompt)
    assert not torch.allclose(untrained.encode(SENTENCES), again.encode(SENTENCES), atol=1e-4)
