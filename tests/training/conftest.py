"""Two saved towers of two layers, and a tokenised text."""

import pytest
from training_helpers import TEXT

from cselab.data.corpus import load_corpus, tokenize_corpus
from cselab.models import SentenceEncoder


@pytest.fixture(scope="package")
def towers(tmp_path_factory, make_bert, word_tokenizer):
    """Folders of two encoders with different weights."""
    folders = [tmp_path_factory.mktemp("towers") / name for name in ("i", "ii")]
    for seed, folder in enumerate(folders, 1):
        encoder = SentenceEncoder(make_bert(seed, num_hidden_layers=2), word_tokenizer)
        encoder.save_pretrained(folder)
    return [str(folder) for folder in folders]


@pytest.fixture(scope="package")
def corpus(tmp_path_factory, word_tokenizer):
    """The rows of `TEXT`."""
    folder = tmp_path_factory.mktemp("corpus")
    (folder / "text.txt").write_text("\n".join(TEXT))
    text = load_corpus([str(folder / "text.txt")])
    return tokenize_corpus(text, word_tokenizer, max_length=16, cache_dir=folder / "cache")
