"""Translators: the one a setting opens, equal calls, and prepared round trips."""

import gzip
import json

import pytest
import torch

from cselab.data.translation.parallel import load_parallel
from cselab.data.translation.pivot import LexicalPivot
from cselab.data.translation.translators import (
    PreparedTrips,
    RoundTripTranslator,
    Seq2Seq,
    open_translator,
)
from cselab.errors import DataError, SettingsError

LANGUAGES = [">>fr<<", ">>en<<"]
TEXT = ["a man is playing guitar .", "the dog", "a red ball is under the table in the park ."]
SMALL = {"d_model": 16, "encoder_layers": 1, "decoder_layers": 1, "init_std": 0.5}
SMALL |= {"encoder_attention_heads": 2, "decoder_attention_heads": 2, "encoder_ffn_dim": 32}
SMALL |= {"decoder_ffn_dim": 32, "max_position_embeddings": 300}


def save(model_class, config, tokenizer, folder):
    torch.manual_seed(0)
    model_class(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def marian(tmp_path_factory):
    """A real Marian folder with its sentencepiece tokenizer, as of opus-mt; random weights."""
    import sentencepiece
    from transformers import MarianConfig, MarianMTModel, MarianTokenizer

    folder = tmp_path_factory.mktemp("marian")
    text, source, words = (str(folder / name) for name in ("text.txt", "source", "vocab.json"))
    (folder / "text.txt").write_text("\n".join(TEXT * 20))
    sentencepiece.SentencePieceTrainer.train(
        input=text, model_prefix=source, vocab_size=60, hard_vocab_limit=False, minloglevel=2
    )
    spm = f"{source}.model"
    pieces = sentencepiece.SentencePieceProcessor(model_file=spm)
    known = [pieces.id_to_piece(i) for i in range(3, len(pieces))]
    vocabulary = {word: i for i, word in enumerate(["</s>", "<unk>", *LANGUAGES, *known, "<pad>"])}
    (folder / "vocab.json").write_text(json.dumps(vocabulary))
    tokenizer = MarianTokenizer(source_spm=spm, target_spm=spm, vocab=words)
    pad = vocabulary["<pad>"]
    tokens = {"pad_token_id": pad, "decoder_start_token_id": pad, "eos_token_id": 0}
    config = MarianConfig(vocab_size=len(vocabulary), **tokens, **SMALL)
    return save(MarianMTModel, config, tokenizer, folder)


@pytest.fixture(scope="module")
def m2m100(tmp_path_factory, marian):
    """A real M2M100 folder, as of the hub's multilingual model; random weights."""
    from transformers import M2M100Config, M2M100ForConditionalGeneration, M2M100Tokenizer

    folder = tmp_path_factory.mktemp("m2m100")
    words = list(json.loads((marian / "vocab.json").read_text()))
    vocabulary = {word: i for i, word in enumerate(["<s>", "<pad>", "</s>", "<unk>", *words[2:-1]])}
    (folder / "vocab.json").write_text(json.dumps(vocabulary))
    spm = str(marian / "source.spm")
    tokenizer = M2M100Tokenizer(vocab_file=str(folder / "vocab.json"), spm_file=spm)
    size = max(tokenizer.lang_token_to_id.values()) + 1
    config = M2M100Config(vocab_size=size, **SMALL)
    return save(M2M100ForConditionalGeneration, config, tokenizer, folder)


def test_a_multilingual_model_is_told_both_languages(m2m100, monkeypatch):
    """Prevents another target language, and English read as French by the shared tokenizer."""
    trip = open_translator(str(m2m100), "fr")
    assert trip.to_pivot.model is trip.to_english.model
    generate, seen = trip.to_pivot.model.generate, []

    def spy(**inputs):
        out = generate(**inputs)
        seen.append((inputs["input_ids"][:, 0], out[:, 1]))
        return out

    monkeypatch.setattr(trip.to_pivot.model, "generate", spy)
    assert len(trip(TEXT)) == len(TEXT)
    trip(TEXT)
    english, french = map(trip.to_pivot.tokenizer.get_lang_id, ("en", "fr"))
    for call, (source, target) in enumerate([(english, french), (french, english)] * 2):
        first, forced = seen[call]
        assert (first == source).all()
        assert (forced == target).all()
    assert trip.to_pivot.fingerprint != trip.to_english.fingerprint


def test_a_marian_model_gives_a_line_a_sentence(marian):
    """Prevents special tokens in the text, and padding that changes a translation."""
    translate = Seq2Seq(marian)
    out = translate(TEXT)
    assert len(out) == len(TEXT)
    assert all("<pad>" not in line and "</s>" not in line for line in out)
    # padding is not read; random weights never end a sentence
    for line, together in zip(TEXT, out, strict=True):
        assert together.startswith(translate([line])[0])


def test_draws_depend_on_the_sentences_and_the_seed_alone(marian):
    """Prevents other words in a resumed run, and a changed random state of the caller."""
    torch.manual_seed(5)
    expected = torch.rand(1)
    torch.manual_seed(5)
    one = Seq2Seq(marian, temperature=1.0)
    first = one(TEXT)
    assert torch.equal(torch.rand(1), expected)
    one(TEXT[:1])
    assert one(TEXT) == first
    assert Seq2Seq(marian, temperature=1.0, seed=1)(TEXT) != first
    assert Seq2Seq(marian)(TEXT) != first


def test_beams_reach_the_search_and_the_key(marian):
    """Prevents an option that does not reach the search, and a temperature that it ignores."""
    wide = Seq2Seq(marian, beams=4)
    assert Seq2Seq(marian).fingerprint != wide.fingerprint
    wide(TEXT)
    assert wide.search["num_beams"] == 4
    for options in ({"beams": 0}, {"temperature": -1.0}, {"beams": 2, "temperature": 0.5}):
        with pytest.raises(SettingsError, match="1 or more beams"):
            Seq2Seq("nowhere", **options)


def test_which_translator_a_setting_opens(marian, tmp_path):
    """Prevents a download that was not asked for, and a folder that is taken for a name."""
    assert isinstance(open_translator("lexical", "ru"), LexicalPivot)
    trip = open_translator(str(marian), "fr")
    assert isinstance(trip, RoundTripTranslator)
    assert trip(TEXT) == trip.to_english(trip.to_pivot(TEXT))
    (tmp_path / "fr.tsv").write_text("sentence\tround_trip\na\tb\n")
    assert open_translator(str(tmp_path / "{pivot}.tsv"), "fr")(["a"]) == ["b"]
    with pytest.raises(SettingsError, match="is on the hub; set hub=True, or use 'lexical'"):
        open_translator("multilingual", "fr")


def test_a_translator_of_one_direction_is_refused(marian, monkeypatch):
    """Prevents round trips in which English goes into the model that gives English."""
    from transformers import MarianTokenizer

    get_vocab = MarianTokenizer.get_vocab

    def without(self):
        return {word: i for word, i in get_vocab(self).items() if word not in LANGUAGES}

    monkeypatch.setattr(MarianTokenizer, "get_vocab", without)
    with pytest.raises(DataError, match="no tokens of languages, so it knows one direction alone"):
        open_translator(str(marian), "fr")


def test_what_does_not_translate_is_refused_in_one_line(m2m100, tmp_path):
    """Prevents `KeyError: 'xx'`, and round trips that are the sentences themselves."""
    with pytest.raises(DataError, match="does not know 'xx'"):
        open_translator(str(m2m100), "xx")
    with pytest.raises(DataError, match="no translator at .*give a folder that"):
        open_translator(str(tmp_path), "fr")


def test_prepared_round_trips_are_read_by_sentence(tmp_path):
    """Prevents trips in the order of the file, and a sentence without one that stays as it is."""
    path = tmp_path / "trips.tsv"
    path.write_text("sentence\tround_trip\nThe dog.\tA dog.\nOne.\tUne.\n")
    trips = PreparedTrips(path)
    (tmp_path / "trips.CSV").write_text('sentence,round_trip\n"The dog.",A dog.\nOne.,Une.\n\n')
    assert open_translator(tmp_path / "trips.CSV", "fr").fingerprint == trips.fingerprint
    assert trips(["One.", "The dog."]) == ["Une.", "A dog."]
    with pytest.raises(DataError, match="no round trip of 'Two.' and 0 more"):
        trips(["One.", "Two."])


def test_parallel_text_is_pairs_of_two_named_languages(tmp_path):
    """Prevents languages that change places, and half a line that is read as a pair."""

    def write(text):
        (tmp_path / "parallel").mkdir(exist_ok=True)
        with gzip.open(tmp_path / "parallel" / "toy-en-fr.tsv.gz", "wt") as file:
            file.write(text)

    write("en\tfr\nThe dog.\tLe chien.\n")
    text = load_parallel("toy-en-fr", folder=tmp_path)
    assert text.languages == ("en", "fr")
    assert text.pairs == [("The dog.", "Le chien.")]
    for bad, message in [
        ("en\tfr\nThe dog.\t\n", "line 2: expected a sentence and its translation"),
        ("en\tfr\tde\na\tb\tc\n", "line 2: expected a sentence and its translation"),
        ("en\tfr\n\n", "has no pairs"),
    ]:
        write(bad)
        with pytest.raises(DataError, match=message):
            load_parallel("toy-en-fr", folder=tmp_path)
