"""Adapters on disk and in memory: alone, in peft's format, with the model that they adapt."""

import json
import shutil

import pytest
import torch
from llama_helpers import save_llama
from peft import PeftModel
from safetensors.torch import load_file
from transformers import AutoModel

import cselab
from cselab.errors import ModelError, SettingsError
from cselab.models import SentenceEncoder, add_lora, decoder_memory, export, load, load_decoder

SENTENCES = ["the dog", "a man is playing guitar in the park .", "a red ball is under the table"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory, word_tokenizer):
    """A saved Llama of three layers, in bfloat16."""
    folder = tmp_path_factory.mktemp("decoder") / "llama"
    return save_llama(folder, word_tokenizer, layers=3, dtype=torch.bfloat16)


def adapted(folder, **options):
    """An encoder with adapters that change its vectors."""
    model, tokenizer = load_decoder(folder, **options)
    torch.manual_seed(1)
    add_lora(model, rank=2, alpha=4.0, dropout=0.1)
    for name, parameter in model.named_parameters():
        if "lora_B" in name:
            torch.nn.init.normal_(parameter, std=0.1)
    return SentenceEncoder(model.eval(), tokenizer, pooling="mean", prompt="the {sentence} is")


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("how", ["last", 2, "addition", "sum"])
def test_saved_adapters_come_back_with_their_model(folder, tmp_path, how, dtype):
    """Prevents a reload in another precision or under another mask, adapters that are lost, and
    adapters on disk with the weights that they adapt."""
    encoder = adapted(folder, bidirectional=how, padding="unmasked", dtype=dtype)
    expected = encoder.encode(SENTENCES)
    encoder.save_pretrained(tmp_path / "saved")
    assert torch.equal(encoder.encode(SENTENCES), expected)
    assert not list(tmp_path.rglob("model.safetensors"))
    state = torch.get_rng_state()
    again = cselab.load(str(tmp_path / "saved"))
    assert torch.equal(torch.get_rng_state(), state)
    assert again.backbone.dtype == dtype
    assert torch.equal(again.encode(SENTENCES), expected)
    again.save_pretrained(tmp_path / "twice")  # an export or a copy of a finished step
    assert torch.equal(cselab.load(str(tmp_path / "twice")).encode(SENTENCES), expected)
    with pytest.raises(ModelError, match=r"a prompt .* or export its stock model \(--stock\)"):
        export(again, tmp_path / "exported")
    export(again, tmp_path / "merged", stock=True)
    stock = AutoModel.from_pretrained(tmp_path / "merged", dtype="auto")
    assert stock.dtype == dtype
    merged = cselab.load(str(tmp_path / "merged"))
    assert merged.backbone.dtype == dtype
    tolerance = 1e-4 if dtype == torch.float32 else 0.1
    torch.testing.assert_close(merged.encode(SENTENCES), expected, atol=tolerance, rtol=tolerance)


def test_peft_reads_the_adapters(folder, tmp_path):
    """Prevents a format of our own: peft puts the adapters on the stock model."""
    encoder = adapted(folder, bidirectional="none")
    expected = encoder.encode(SENTENCES)
    encoder.save_pretrained(tmp_path / "saved")
    stock = AutoModel.from_pretrained(folder, dtype=torch.float32)
    model = PeftModel.from_pretrained(stock, tmp_path / "saved").eval()
    plain = SentenceEncoder(model.get_base_model(), encoder.tokenizer, pooling="mean")
    found = plain.encode([f"the {sentence} is" for sentence in SENTENCES])
    torch.testing.assert_close(found, expected, atol=1e-5, rtol=1e-4)


def test_two_saves_of_the_same_adapters_are_the_same_bytes(folder, tmp_path):
    """Prevents a fingerprint that depends on the order of a set."""
    for name in ("one", "two"):
        adapted(folder, bidirectional="last").save_pretrained(tmp_path / name)
    for path in (tmp_path / "one").iterdir():
        assert path.read_bytes() == (tmp_path / "two" / path.name).read_bytes()
    config = json.loads((tmp_path / "one" / "adapter_config.json").read_text())
    assert config["target_modules"] == sorted(config["target_modules"])


def test_adapters_of_adapters_are_a_second_stage(folder, tmp_path):
    """Prevents a second stage whose reload forgets the first."""
    adapted(folder, bidirectional="last").save_pretrained(tmp_path / "first")
    second = adapted(tmp_path / "first", bidirectional="last")
    expected = second.encode(SENTENCES)
    second.save_pretrained(tmp_path / "second")
    assert torch.equal(cselab.load(str(tmp_path / "second")).encode(SENTENCES), expected)
    assert not torch.allclose(
        cselab.load(str(tmp_path / "first")).encode(SENTENCES), expected, atol=1e-2
    )


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (shutil.rmtree, "need the model .*, which is neither a folder nor in the hub's cache"),
        (lambda base: (base / "config.json").write_text("{}"), "belong to another .*fingerprint"),
    ],
)
def test_a_missing_or_changed_model_is_one_line(folder, tmp_path, change, said):
    """Prevents adapters on the weights of another model, and a traceback of the hub's."""
    base = shutil.copytree(folder, tmp_path / "base")
    adapted(base, bidirectional="last").save_pretrained(tmp_path / "saved")
    change(base)
    with pytest.raises(ModelError, match=said) as caught:
        cselab.load(str(tmp_path / "saved"))
    assert "\n" not in str(caught.value)


def test_a_model_that_moved_is_given(folder, tmp_path):
    """Prevents a finished step that does not load because the same decoder lies elsewhere now, or
    has another file beside its weights."""
    base = shutil.copytree(folder, tmp_path / "base")
    encoder = adapted(base, bidirectional="last")
    expected = encoder.encode(SENTENCES)
    encoder.save_pretrained(tmp_path / "saved")
    moved = base.rename(tmp_path / "moved")
    (moved / "generation_config.json").write_text("{}")
    loaded = load(tmp_path / "saved", base=moved)
    assert torch.equal(loaded.encode(SENTENCES), expected)


def test_damaged_adapters_are_refused(folder, tmp_path):
    """Prevents adapters that are partly drawn anew."""
    adapted(folder, bidirectional="last").save_pretrained(tmp_path / "saved")
    path = tmp_path / "saved" / "adapter_model.safetensors"
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(ModelError, match="do not load"):
        cselab.load(str(tmp_path / "saved"))
    (tmp_path / "saved" / "adapter_config.json").write_text("{")
    with pytest.raises(ModelError, match="is damaged"):
        cselab.load(str(tmp_path / "saved"))


@pytest.mark.skipif(torch.cuda.is_available(), reason="has 4-bit weights")
def test_four_bits_without_cuda_are_one_line(folder):
    """Prevents a traceback of transformers', after the download of a model."""
    with pytest.raises(SettingsError, match=r"four_bit needs a CUDA device.*four_bit=False"):
        load_decoder(folder, four_bit=True)


@pytest.mark.parametrize("rank", [0, 2])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_memory_is_what_tensors_and_files_take(folder, tmp_path, rank, dtype):
    """Prevents a table of memory that counts other tensors than a training has."""
    model, tokenizer = load_decoder(folder, dtype=getattr(torch, dtype))
    stated = decoder_memory(model.config, rank=rank, weights=dtype)
    assert sum(p.nbytes for p in model.parameters()) == stated["weights"]
    if rank:
        add_lora(model, rank=rank, alpha=4.0, dropout=0.0)
    elif dtype == "bfloat16":
        return  # all weights are trained in float32
    lora = sum(p.nbytes for name, p in model.named_parameters() if "lora_" in name)
    assert lora == stated["adapters"]
    trained = [p for p in model.parameters() if p.requires_grad]
    optimiser = torch.optim.AdamW(trained)
    encoder = SentenceEncoder(model, tokenizer, pooling="mean")
    batch = tokenizer(SENTENCES, padding=True, return_tensors="pt", return_token_type_ids=False)
    encoder(**batch).sum().backward()
    optimiser.step()
    assert sum(p.grad.nbytes for p in trained) == stated["gradients"]
    moments = [t for s in optimiser.state.values() for t in s.values() if t.ndim]
    assert sum(t.nbytes for t in moments) == stated["optimiser"]
    encoder.save_pretrained(tmp_path / "saved")
    (path,) = (tmp_path / "saved").glob("*.safetensors")
    tensors = sum(t.nbytes for t in load_file(path).values())
    assert tensors == stated["checkpoint"] // 4
    assert tensors <= path.stat().st_size < tensors + 20_000  # names and shapes
