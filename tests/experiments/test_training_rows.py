"""Training rows: the text, its round trips as each mode says, triplets, and teachers' vectors."""

import gzip

import pytest
from datasets import Dataset
from quick import same_weights

from cselab.data.settings import RoundTrips
from cselab.data.translation.round_trip import RoundTrip
from cselab.experiments.train import rows_of
from cselab.experiments.training_rows import combine, text_rows

FRENCH = RoundTrips(pivot="fr")


@pytest.fixture
def ids(lab):
    """`ids(mode)`: token ids of SimCSE's rows; "" is SimCSE without round trips."""
    tokenizer = lab.pretrained().tokenizer

    def ids(mode):
        changes = {"mode": mode} if mode else {"round_trips": None}
        node = lab.config("simcse", **changes)
        return rows_of(lab.cache, node, tokenizer)["input_ids"][:]

    return ids


def test_rows_of_a_text_and_its_round_trip():
    """Prevents a pair mode whose second view is the sentence itself, or a replace mode that keeps
    the text."""
    rows = Dataset.from_dict({"input_ids": [[1], [2, 2]], "length": [1, 2]})
    trips = Dataset.from_dict({"input_ids": [[7], [8, 8]], "length": [1, 2]})
    assert combine(rows, trips, "append")["input_ids"][:] == [[1], [2, 2], [7], [8, 8]]
    assert combine(rows, trips, "replace")["input_ids"][:] == [[7], [8, 8]]
    pair = combine(rows, trips, "pair")
    assert pair["input_ids"][:] == [[1], [2, 2]]
    assert pair["input_ids_b"][:] == [[7], [8, 8]]


def test_the_controls_of_round_trips_hold_the_text_alone(ids):
    """Prevents a control that sees round trips, and one that has fewer rows than what it controls
    for."""
    plain = ids("")
    assert ids("none") == plain
    assert ids("twice") == 2 * plain
    assert len(ids("append")) == 2 * len(plain)
    assert ids("append") != ids("twice")


def test_the_round_trips_of_the_text_line_up_with_it(lab):
    text = lab.data.sentences()
    assert lab.round_trips("fr") == list(RoundTrip("fr")(text))


@pytest.mark.parametrize(
    ("mode", "expected"),
    [
        ("append", ["text", "trip"]),
        ("replace", ["trip"]),
        ("pair", ["text"]),
        ("twice", ["text", "text"]),
    ],
)
def test_further_columns_follow_their_sentences(lab, mode, expected):
    """Prevents round trips that are taught the vectors of the sentences they came from."""
    kinds = {lab.data.text.fingerprint: "text"}

    def widen(rows, corpus):
        return rows.add_column("of", [kinds.get(corpus.fingerprint, "trip")] * len(rows))

    rows = text_rows(
        lab.data.text,
        lab.pretrained().tokenizer,
        max_length=32,
        cache_dir=lab.cache.cache_dir,
        mode=mode,
        trips=lambda: lab.cache.round_trip_file(FRENCH),
        widen=widen,
    )
    assert rows["of"][:] == [kind for kind in expected for _ in range(len(lab.data.text))]


def test_prepared_round_trips_take_the_translators_place(lab, open_lab, tmp_path):
    """Prevents the lexical pivot's round trips from standing for a translator's."""
    path = tmp_path / "trips.tsv"
    text = lab.data.sentences()
    lines = [f"{line}\tback {i}\n" for i, line in enumerate(text)]
    path.write_text("".join(["sentence\tround_trip\n", *lines]))
    prepared = open_lab(translator=str(path))
    assert prepared.round_trips("fr") == [f"back {i}" for i in range(len(text))]
    assert lab.round_trips("fr") != prepared.round_trips("fr")
    assert not same_weights(lab.train("simcse"), prepared.train("simcse"))


# --------------------------------------------------------------------------------- triplets


def test_supervised_methods_learn_from_synthetic_triplets(open_lab):
    lab = open_lab(triplets=24)
    assert len(lab.data.triplets) == 24
    assert lab.train("simcse_supervised").fit["history"][-1]["triplet"] > 0


def test_the_nli_of_a_folder_comes_before_synthetic_triplets(open_lab, tmp_path):
    (tmp_path / "nli").mkdir()
    with gzip.open(tmp_path / "nli" / "toy.tsv.gz", "wt") as file:
        file.write("premise\thypothesis\tlabel\np\ty\tentailment\np\tn\tcontradiction\n")
    (found,) = open_lab(nli="toy", data_dir=tmp_path).data.triplets
    assert (found.anchor, found.entailed, found.contradicted) == ("p", "y", "n")


def test_triplets_are_put_into_the_methods_own_prompt(lab):
    """Prevents a decoder that is trained on bare sentences and read in a prompt."""
    decoder = lab.create("bellm")
    plain, framed = (
        rows_of(lab.cache, lab.config(name), decoder.encoder.tokenizer)["input_ids"][:]
        for name in ("simcse_supervised", "bellm")
    )
    assert all(len(one) < len(other) for one, other in zip(plain, framed, strict=True))
