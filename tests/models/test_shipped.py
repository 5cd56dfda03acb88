"""The models that ship with the project: small enough for a clone, and trained."""

import json

import pytest
import torch
from transformers import AutoModelForCausalLM

from cselab.data.sources import embedded_dir
from cselab.models import load_backbone, load_tokenizer

BACKBONES = embedded_dir() / "backbones"


def size(folder) -> int:
    return sum(path.stat().st_size for path in folder.iterdir())


@pytest.mark.parametrize(
    ("name", "width", "most"),
    [("tiny-bert", 192, 8e6), ("plain-bert", 192, 8e6), ("minilm-mlm", 384, 30.5e6)],
)
def test_a_shipped_backbone_has_what_the_methods_read(name, width, most):
    """Prevents shipping weights whose pooler nobody trained, a tokenizer of [UNK]s, or a file too
    large for a clone."""
    folder = BACKBONES / name
    model = load_backbone(folder, pooler="required")
    assert (model.config.num_hidden_layers, model.config.hidden_size) == (6, width)
    tokenizer = load_tokenizer(folder)
    ids = tokenizer("A man is playing a guitar in the garden.")["input_ids"]
    assert tokenizer.unk_token_id not in ids
    assert len(ids) < 14
    assert size(folder) < most


def test_the_english_backbone_passed_its_gate():
    """Prevents shipping a start from which training does not pay: on dev, SimCSE has to exceed
    every untrained pooling and what needs no network."""
    card = json.loads((BACKBONES / "minilm-mlm" / "card.json").read_text())
    dev = {row["row"]: row["STSBenchmark dev"] for row in card["gate"]}
    trained = {dev.pop(name) for name in ("simcse", "sum", "tncse", "jtcse")}
    assert min(trained) > max(dev.values())


def test_the_shipped_decoder_has_learned_english():
    """Prevents shipping weights that a wrong mask or an untied head made useless, or a file too
    large for a clone."""
    folder = BACKBONES / "tiny-llama"
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
    sentence = "The capital of the country is a city in the north."
    ids = load_tokenizer(folder)(sentence, return_tensors="pt")["input_ids"]
    shuffled = torch.cat([ids[:, :1], ids[:, 1:-1].flip(1), ids[:, -1:]], dim=1)
    with torch.no_grad():
        loss, backwards = (model(input_ids=x, labels=x).loss.item() for x in (ids, shuffled))
    card = json.loads((folder / "card.json").read_text())["measured"]
    assert loss < card["next-token loss"] + 1  # nats; a uniform guess costs 9
    assert backwards > loss + 1
    assert size(folder) < 8e6
