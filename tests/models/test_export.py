"""Exported encoders open in sentence-transformers and here, with the same embeddings."""

import pytest
import torch
from sentence_transformers import SentenceTransformer

import cselab
from cselab.models import SentenceEncoder, TwinEncoder, export

SENTENCES = [
    "a man is playing guitar .",
    "the dog",
    "the big red ball was not under the table , in the house .",
    "dog",
]


@pytest.mark.parametrize("pooling", ["cls", "mean", "last_token", "pooler"])
def test_a_single_tower_is_stock_modules(make_tower, word_tokenizer, tmp_path, pooling):
    """Prevents another pooling, a lost [CLS], or a folder that asks to run foreign code."""
    encoder = SentenceEncoder(make_tower(3), word_tokenizer, pooling=pooling)
    expected = encoder.encode(SENTENCES)
    export(encoder, tmp_path / "out")
    opened = SentenceTransformer(str(tmp_path / "out"), device="cpu")
    found = opened.encode(SENTENCES, convert_to_tensor=True)
    torch.testing.assert_close(found, expected, atol=1e-5, rtol=0)
    torch.testing.assert_close(
        cselab.load(tmp_path / "out").encode(SENTENCES), expected, atol=1e-6, rtol=0
    )
    long = " ".join(["dog"] * 200)  # cut at what the backbone reads, not an index error
    torch.testing.assert_close(
        opened.encode([long], convert_to_tensor=True), encoder.encode([long]), atol=1e-5, rtol=0
    )


def test_a_twin_needs_consent_to_its_one_module(make_tower, word_tokenizer, tmp_path):
    """Prevents code that runs without being asked for, and a twin that opens as one tower."""
    encoder = TwinEncoder(
        make_tower(3), make_tower(4), cael=(2, 4), tokenizer=word_tokenizer
    ).eval()
    export(encoder, tmp_path / "out")
    with pytest.raises(ValueError, match="trust_remote_code"):
        SentenceTransformer(str(tmp_path / "out"))
    opened = SentenceTransformer(str(tmp_path / "out"), trust_remote_code=True, device="cpu")
    expected = encoder.encode(SENTENCES)
    torch.testing.assert_close(
        opened.encode(SENTENCES, convert_to_tensor=True), expected, atol=1e-5, rtol=0
    )
    # and it survives the other library's own saving
    opened.save_pretrained(str(tmp_path / "again"))
    assert "SecondTower" in (tmp_path / "again" / "modules.json").read_text()
    ours = cselab.load(tmp_path / "out")
    assert ours.cael == (2, 4)
    torch.testing.assert_close(ours.encode(SENTENCES), expected, atol=1e-6, rtol=0)
