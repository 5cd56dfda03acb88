"""Triplets out of natural language inference."""

import gzip

import pytest

from cselab.data.nli import load_nli_text, load_nli_triplets, tokenize_triplets
from cselab.data.synthetic import Triplet
from cselab.errors import DataError

ROWS = [
    "premise\thypothesis\tlabel",
    "A dog runs.\tA cat runs.\tcontradiction",
    "A man eats.\tA man sleeps.\tcontradiction",
    "A dog runs.\tAn animal runs.\tentailment",
    "A dog runs.\tIt is a brown dog.\tneutral",
    "A dog runs.\tA dog moves.\tentailment",
    "Two boys.\tTwo people.\tentailment",
]


def write(folder, name, rows):
    (folder / "nli").mkdir(exist_ok=True)
    with gzip.open(folder / "nli" / f"{name}.tsv.gz", "wt") as file:
        file.write("\n".join(rows) + "\n")


def test_a_premise_needs_an_entailed_and_a_contradicted_sentence(tmp_path):
    """Prevents a neutral hypothesis as a negative, and a lost premise of two files."""
    write(tmp_path, "one", ROWS)
    write(tmp_path, "two", [ROWS[0], "Two boys.\tNobody.\tcontradiction"])
    assert load_nli_triplets(["one"], folder=tmp_path) == [
        Triplet("A dog runs.", "An animal runs.", "A cat runs.")
    ]
    (tmp_path / "own.csv").write_text("\n".join(ROWS).replace("\t", ",") + "\n\n")
    one = load_nli_triplets(["one"], folder=tmp_path)
    for name in ("one", tmp_path / "own.csv", [str(tmp_path / "own.csv")]):
        assert load_nli_triplets(name, folder=tmp_path) == one
    both = load_nli_triplets(["one", "two"], folder=tmp_path)
    assert both[1] == Triplet("Two boys.", "Two people.", "Nobody.")


def test_files_that_give_no_triplets_are_refused(tmp_path):
    """Prevents a training on the triplets of half a file."""
    write(tmp_path, "one", ROWS[:3])
    with pytest.raises(DataError, match="no premise in one has both"):
        load_nli_triplets(["one"], folder=tmp_path)


@pytest.mark.real_data
def test_triplets_of_the_real_files(data_dir):
    """SNLI's dev set has 3,319 premises, most with both."""
    triplets = load_nli_triplets(["snli-dev"], folder=data_dir)
    assert 2900 < len(triplets) < 3000
    # a premise may entail itself, word for word
    assert all(t.contradicted not in (t.anchor, t.entailed) for t in triplets)


def test_triplets_become_three_columns_of_tokens(tmp_path, word_tokenizer):
    """Prevents exchanged hypotheses, a prompt on one side only, and lengths of the anchor alone."""
    triplets = [
        Triplet("the dog", "a big dog is running .", "the cat"),
        Triplet("a man", "the man", "a woman is not eating"),
    ]
    options = {"max_length": 16, "add_prompt": lambda texts: [f"a {text} ." for text in texts]}
    rows = tokenize_triplets(triplets, word_tokenizer, tmp_path / "rows.arrow", **options)
    texts = [
        word_tokenizer.batch_decode(rows[f"input_ids{side}"][:], skip_special_tokens=True)
        for side in ("", "_b", "_c")
    ]
    assert texts == [
        ["a the dog .", "a a man ."],
        ["a a big dog is running . .", "a the man ."],
        ["a the cat .", "a a woman is not eating ."],
    ]
    assert rows["length"][:] == [10, 9]


def test_the_text_has_each_premise_and_hypothesis_once(tmp_path):
    """Prevents labels in an unlabelled text, repeated premises, and lost neutral hypotheses."""
    write(tmp_path, "one", ROWS)
    text = load_nli_text(["one"], folder=tmp_path)
    sentences = {sentence for row in ROWS[1:] for sentence in row.split("\t")[:2]}
    assert sorted(text) == sorted(sentences)
    assert len(load_nli_text(["one"], folder=tmp_path, limit=3)) == 3
