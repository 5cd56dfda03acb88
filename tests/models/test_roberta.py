"""RoBERTa: positions that start after the padding id, bytes as tokens, base's depth and shape."""

import pytest
import torch
from roberta_helpers import TEXTS, byte_tokenizer, save_roberta, tokenised
from sentence_transformers import SentenceTransformer
from transformers import RobertaModel

import cselab
from cselab.errors import ModelError
from cselab.models import (
    SentenceEncoder,
    TwinEncoder,
    cael_positions,
    export,
    load_backbone,
)
from cselab.models.backbone import longest_input


@pytest.fixture(scope="module")
def folders(tmp_path_factory) -> list[str]:
    """Two RoBERTas of twelve layers."""
    folder = tmp_path_factory.mktemp("deep")
    return [save_roberta(folder / name, seed) for seed, name in enumerate("ab")]


def twin(folders) -> TwinEncoder:
    """With six cross-attention layers."""
    towers = [load_backbone(folder) for folder in folders]
    return TwinEncoder(*towers, cael=cael_positions(12, 2), tokenizer=byte_tokenizer()).eval()


def test_positions_start_after_the_padding_id(folders):
    """Prevents positions from 0, of which RoBERTa trained none, and positions that depend on how
    far a batch is padded."""
    batch = tokenised(TEXTS)
    assert not batch["attention_mask"].all()
    stock = RobertaModel.from_pretrained(folders[0], dtype=torch.float32).eval()
    found = SentenceEncoder(load_backbone(folders[0]), byte_tokenizer()).encode(TEXTS)
    with torch.no_grad():
        for text, vector in zip(TEXTS, found, strict=True):
            ids = tokenised([text])["input_ids"]
            positions = stock.config.pad_token_id + 1 + torch.arange(ids.shape[1])[None]
            alone = stock(ids, position_ids=positions).last_hidden_state[0, 0]
            torch.testing.assert_close(vector, alone, atol=1e-4, rtol=1e-4)


def test_514_positions_hold_512_tokens(folders):
    """Prevents an index error on a long sentence, and two positions that are given away."""
    encoder = twin(folders)
    assert all(longest_input(tower) == 512 for tower in encoder.backbones)
    ids = torch.full((1, 512), 7)
    assert (
        encoder.embed({"input_ids": ids, "attention_mask": torch.ones_like(ids)}).isfinite().all()
    )
    with pytest.raises(ModelError, match="513 tokens wide, the backbone reads at most 512"):
        encoder(torch.full((1, 513), 7))
    assert encoder.encode(["é" * 600]).isfinite().all()


@pytest.mark.parametrize("kind", ["single", "twin"])
def test_an_exported_roberta_gives_equal_embeddings(folders, tmp_path, kind):
    """Prevents token types that RoBERTa lacks, a lower-cased text, a second `<s>`, and a text that
    is cut two tokens too late."""
    if kind == "single":
        encoder = SentenceEncoder(load_backbone(folders[0]), byte_tokenizer())
    else:
        encoder = twin(folders)
    texts = [*TEXTS, *(text.lower() for text in TEXTS), "é guitar " * 400]
    expected = encoder.encode(texts)
    assert not torch.allclose(expected[0], expected[len(TEXTS)])  # case counts
    export(encoder, tmp_path / "out")
    opened = SentenceTransformer(
        str(tmp_path / "out"), trust_remote_code=kind == "twin", device="cpu"
    )
    found = opened.encode(texts, convert_to_tensor=True)
    torch.testing.assert_close(found, expected, atol=1e-4, rtol=1e-4)
    ours = cselab.load(tmp_path / "out").encode(texts)
    torch.testing.assert_close(ours, expected, atol=1e-5, rtol=1e-5)
