"""Two saved towers, and a batch of two views."""

import pytest
from method_helpers import SENTENCES, tokenised

from cselab.models import SentenceEncoder


@pytest.fixture(scope="package")
def towers(tmp_path_factory, make_bert, word_tokenizer):
    """Folders of two encoders with different weights."""
    folders = [tmp_path_factory.mktemp("towers") / name for name in ("i", "ii")]
    for seed, folder in enumerate(folders, 1):
        SentenceEncoder(make_bert(seed), word_tokenizer).save_pretrained(folder)
    return [str(folder) for folder in folders]


@pytest.fixture
def batch(word_tokenizer):
    """Four sentences, each as two equal views."""
    return tokenised(word_tokenizer, 2 * SENTENCES)
