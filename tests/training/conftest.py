"""Two saved towers of two layers, and a tokenised text."""

from pathlib import Path

import pytest
from processes import text
from training_helpers import TEXT

from cselab.models import SentenceEncoder


@pytest.fixture(scope="package")
def folder(tmp_path_factory, make_bert, word_tokenizer):
    """A folder with two encoders of different weights and text.txt."""
    folder = tmp_path_factory.mktemp("shared")
    for seed, name in enumerate(("tower_i", "tower_ii"), 1):
        encoder = SentenceEncoder(make_bert(seed, num_hidden_layers=2), word_tokenizer)
        encoder.save_pretrained(folder / name)
    (folder / "text.txt").write_text("\n".join(TEXT))
    return folder


@pytest.fixture(scope="package")
def towers(folder: Path) -> list[str]:
    return [str(folder / name) for name in ("tower_i", "tower_ii")]


@pytest.fixture(scope="package")
def corpus(folder: Path):
    return text(folder)
