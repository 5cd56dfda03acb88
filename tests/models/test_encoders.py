"""Loading, pooling and encoding: the silent failures of everyday use."""

import inspect
import json

import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import LlamaConfig, LlamaModel, PreTrainedTokenizerFast

from cselab.errors import DataError, ModelError
from cselab.models import (
    POOLINGS,
    SentenceEncoder,
    TwinEncoder,
    encode,
    load_backbone,
    load_tokenizer,
    longest_input,
    pool,
)

SENTENCES = [
    "a man is playing guitar .",
    "the dog",
    "the big red ball was not under the table , in the house .",
    "dog",
]


@pytest.fixture
def saved(make_tower, word_tokenizer, tmp_path):
    """A saved encoder folder, and the model that was saved."""
    encoder = SentenceEncoder(make_tower(3), word_tokenizer, pooling="mean")
    encoder.save_pretrained(tmp_path / "encoder")
    return tmp_path / "encoder", encoder


# ------------------------------------------------------------------------------------------ loading


def test_a_half_precision_file_is_loaded_in_single_precision(saved):
    """from_pretrained keeps the file's dtype, so an fp16 file would silently train in fp16."""
    folder, encoder = saved
    encoder.backbone.half().save_pretrained(folder)
    assert load_backbone(folder).dtype == torch.float32


def _drop(folder, prefix):
    path = folder / "model.safetensors"
    save_file(
        {k: v for k, v in load_file(path).items() if not k.startswith(prefix)},
        path,
        metadata={"format": "pt"},
    )


def test_a_missing_pooler_is_an_error_where_it_is_read(saved):
    """The commonest wrong number of this field: a pooler that transformers re-initialised with a
    warning."""
    folder, _ = saved
    _drop(folder, "pooler.")
    with pytest.raises(
        ModelError, match="has no trained pooler.*pooler='fresh'.*measured_on='cls'"
    ):
        load_backbone(folder, pooler="required")
    assert load_backbone(folder).pooler is None
    assert load_backbone(folder, pooler="fresh").pooler is not None


def test_other_missing_weights_are_an_error(saved):
    """Prevents a layer of random weights in a loaded model."""
    folder, _ = saved
    _drop(folder, "encoder.layer.2.")
    with pytest.raises(ModelError, match="lacks weights of its own architecture: encoder.layer.2"):
        load_backbone(folder)


@pytest.mark.parametrize("damage", ["truncated", "other shape"])
def test_weights_that_do_not_load_are_refused_in_one_line(saved, damage):
    """Prevents a traceback of the loader's in the place of a reason."""
    folder, _ = saved
    weights = folder / "model.safetensors"
    if damage == "truncated":
        weights.write_bytes(weights.read_bytes()[:5000])
    else:
        config = json.loads((folder / "config.json").read_text())
        (folder / "config.json").write_text(json.dumps({**config, "intermediate_size": 48}))
    with pytest.raises(
        ModelError, match="do not load: expected a model.safetensors that fits"
    ) as caught:
        load_backbone(folder)
    assert "\n" not in str(caught.value)


def test_loading_moves_the_random_state_only_for_a_fresh_pooler(saved):
    """Prevents a checkpoint without a pooler from shifting every later dropout mask of a seeded
    run."""
    folder, _ = saved
    _drop(folder, "pooler.")
    state = torch.get_rng_state()
    load_backbone(folder)
    assert torch.equal(state, torch.get_rng_state())
    first, second = (load_backbone(folder, pooler="fresh").pooler.dense.weight for _ in range(2))
    assert not torch.equal(first, second)


def test_a_mistyped_pooler_or_dropout_is_refused(saved):
    """A typo in `pooler` used to keep a randomly initialised one."""
    folder, _ = saved
    unchecked = inspect.unwrap(load_backbone)  # without the tests' own type checker
    with pytest.raises(ModelError, match="unknown pooler 'requird'; did you mean 'required'"):
        unchecked(folder, pooler="requird")
    with pytest.raises(ModelError, match=r"dropout=1.5 is no probability below 1"):
        load_backbone(folder, dropout=1.5)


def test_a_tokenizer_of_another_backbone_is_refused(make_tower, word_tokenizer):
    """A RoBERTa with another padding id numbers its positions wrongly, without a word."""
    with pytest.raises(ModelError, match="the tokenizer pads with id 0, the backbone with 1"):
        SentenceEncoder(make_tower(pad_token_id=1), word_tokenizer)
    with pytest.raises(
        ModelError,
        match=f"the tokenizer has {len(word_tokenizer)} tokens, the backbone 10 embeddings",
    ):
        SentenceEncoder(make_tower(vocab_size=10), word_tokenizer)


def test_dropout_is_set_everywhere(saved):
    """Prevents the checkpoint's own rate from staying in the attention."""
    folder, _ = saved
    model = load_backbone(folder, dropout=0.25)
    assert {module.p for module in model.modules() if isinstance(module, torch.nn.Dropout)} == {
        0.25
    }


def test_a_path_without_a_model_is_refused_in_one_line(tmp_path):
    """Prevents a search on the hub for a mistyped folder."""
    with pytest.raises(
        ModelError, match="no backbone at .*expected a folder with config.json"
    ) as caught:
        load_backbone(tmp_path)
    assert "\n" not in str(caught.value)


def test_a_decoder_is_refused_as_an_encoder(tmp_path):
    """Prevents a causal model whose first token has read nothing."""
    config = LlamaConfig(
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=1,
        num_attention_heads=2,
        vocab_size=50,
    )
    LlamaModel(config).save_pretrained(tmp_path)
    with pytest.raises(
        ModelError, match="is a 'llama' model; expected an encoder of type bert, roberta"
    ):
        load_backbone(tmp_path)


def test_a_tokenizer_that_knows_no_word_is_refused(tmp_path):
    """BertTokenizerFast(vocab_file=...) maps every word to [UNK] in transformers 5, and training
    runs on happily."""
    from tokenizers import Tokenizer, models

    empty = Tokenizer(models.WordLevel({"[UNK]": 0}, unk_token="[UNK]"))
    PreTrainedTokenizerFast(tokenizer_object=empty, unk_token="[UNK]").save_pretrained(tmp_path)
    with pytest.raises(ModelError, match=r"maps every common English word to \[UNK\]"):
        load_tokenizer(tmp_path)


# ------------------------------------------------------------------------------------------ pooling


def test_poolings_on_numbers_that_can_be_checked_by_hand():
    """Layer 0 is the embedding layer and takes part in no pooling; padding takes part in none."""
    layers = [
        torch.full((2, 3, 1), 100.0),
        torch.tensor([[[1.0], [3.0], [50.0]], [[2.0], [4.0], [6.0]]]),
    ]
    layers += [layers[1] + 10, layers[1] * 2]
    mask = torch.tensor([[1, 1, 0], [1, 1, 1]])
    expected = {
        "cls": [2, 4],
        "mean": [4, 8],
        "first_last": [3, 6],
        "last_two": [8, 11],
        "last_token": [6, 12],
    }
    assert expected.keys() == set(POOLINGS)
    for how, values in expected.items():
        assert pool(layers, mask, how).flatten().tolist() == values, how
    left = torch.tensor([[0, 1, 1], [1, 1, 1]])
    assert pool(layers, left, "last_token").flatten().tolist() == [100, 12]
    with pytest.raises(ModelError, match="unknown pooling 'maen'; did you mean 'mean'"):
        pool(layers, mask, "maen")


def test_one_tensor_is_the_last_layer():
    """Indexed like a sequence of layers, a (B, L, d) tensor would give its last sentence."""
    states, mask = torch.arange(12.0).view(2, 3, 2), torch.tensor([[1, 1, 0], [1, 1, 1]])
    for how in ("cls", "mean", "last_token"):
        assert torch.equal(pool(states, mask, how), pool([states], mask, how))
    with pytest.raises(
        ModelError, match="pooling 'last_two' needs the states of all layers, got one tensor"
    ):
        pool(states, mask, "last_two")


def test_the_pooling_is_saved_with_the_model(saved):
    """Prevents the same checkpoint from scoring 57 with one pooler and 76 with another, depending
    on who loads it."""
    folder, encoder = saved
    again = SentenceEncoder.from_pretrained(folder)
    assert again.pooling == "mean"
    assert torch.equal(again.encode(SENTENCES), encoder.encode(SENTENCES))
    assert json.loads((folder / "cselab.json").read_text())["pooling"] == "mean"
    with pytest.raises(ModelError, match="unknown pooling 'pool'"):
        SentenceEncoder(encoder.backbone, None, pooling="pool")


def test_a_folder_without_an_encoder_is_refused_in_one_line(tmp_path):
    """Prevents a pooling that is guessed."""
    with pytest.raises(
        ModelError,
        match="no cselab.json in .*: expected a folder that SentenceEncoder.save_pretrained wrote",
    ):
        SentenceEncoder.from_pretrained(tmp_path)


def test_a_damaged_card_is_refused_in_one_line(saved):
    """Prevents a traceback of the JSON reader's, and a twin that is opened as one tower."""
    folder, _ = saved
    for text, message in (
        ("{", r"is damaged \(JSONDecodeError"),
        ('{"kind": "sentence"}', r"is damaged \(KeyError: 'pooling'\)"),
        (
            '{"kind": "twin"}',
            "holds a twin: expected a folder that SentenceEncoder.save_pretrained wrote",
        ),
    ):
        (folder / "cselab.json").write_text(text)
        with pytest.raises(ModelError, match=message):
            SentenceEncoder.from_pretrained(folder)


def test_saving_never_deletes_a_folder_that_is_no_encoder(saved, tmp_path):
    """save_pretrained("outputs") used to remove everything in it."""
    folder, encoder = saved
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "thesis.txt").write_text("years")
    with pytest.raises(ModelError, match="exists and is no saved encoder, so it is not replaced"):
        encoder.save_pretrained(tmp_path / "work")
    assert (tmp_path / "work" / "thesis.txt").read_text() == "years"
    encoder.save_pretrained(folder)  # a saved encoder is replaced, an empty folder filled
    (tmp_path / "empty").mkdir()
    encoder.save_pretrained(tmp_path / "empty")
    assert SentenceEncoder.from_pretrained(tmp_path / "empty").pooling == "mean"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["empty", "encoder", "work"]


# ----------------------------------------------------------------------------------------- encoding


def test_a_pooler_that_nobody_trained_is_never_read(make_tower, word_tokenizer, tmp_path):
    """Prevents a re-initialised pooler from giving plausible vectors (roberta-base ships without
    one)."""
    tower = make_tower(3)
    encoder = SentenceEncoder(tower, word_tokenizer, pooling="pooler")
    batch = dict(
        word_tokenizer(SENTENCES, padding=True, return_tensors="pt", return_token_type_ids=False)
    )
    torch.testing.assert_close(encoder.embed(batch), tower(**batch).pooler_output)
    encoder.save_pretrained(tmp_path / "whole")
    again = SentenceEncoder.from_pretrained(tmp_path / "whole").eval()
    torch.testing.assert_close(again.embed(batch), encoder.embed(batch))
    tower.pooler = None
    with pytest.raises(ModelError, match="reads the backbone's pooler, and it has none"):
        SentenceEncoder(tower, word_tokenizer, pooling="pooler")
    encoder.save_pretrained(tmp_path / "bare")  # its pooler is gone, its card still says "pooler"
    with pytest.raises(ModelError, match="has no trained pooler"):
        SentenceEncoder.from_pretrained(tmp_path / "bare")
    assert SentenceEncoder.from_pretrained(tmp_path / "bare", pooler="fresh").pooling == "pooler"


@pytest.mark.parametrize("pooling", [*POOLINGS, "pooler"])
@pytest.mark.parametrize("tokens_per_batch", [1, 24, 8192])
def test_encoding_together_equals_encoding_alone_in_order(
    make_tower, word_tokenizer, pooling, tokens_per_batch
):
    """Prevents padding that changes a vector, and vectors in the order of their lengths."""
    encoder = SentenceEncoder(make_tower(3).double(), word_tokenizer, pooling=pooling)
    alone = torch.cat([encoder.encode([sentence]) for sentence in SENTENCES])
    together = encoder.encode(SENTENCES, tokens_per_batch=tokens_per_batch)
    torch.testing.assert_close(together, alone, rtol=0, atol=1e-6)


def test_a_single_tower_and_a_twin_are_called_alike(make_bert, word_tokenizer):
    """Prevents code that has to know whether it holds a single tower or a twin."""
    signatures = [inspect.signature(kind.forward) for kind in (SentenceEncoder, TwinEncoder)]
    one, two = ([(p.name, p.default, p.kind) for p in s.parameters.values()] for s in signatures)
    assert one == two
    ids = torch.tensor([word_tokenizer(SENTENCES[0])["input_ids"]])
    single = SentenceEncoder(make_bert(1), word_tokenizer).eval()
    twin = TwinEncoder(make_bert(1), make_bert(2)).eval()
    torch.testing.assert_close(single(ids), twin(ids).cls_i)
    torch.testing.assert_close(single(ids, torch.ones_like(ids)), single(ids))


def test_encoding_leaves_mode_and_random_state_alone(make_bert, word_tokenizer):
    """Prevents an evaluation from switching dropout off for the rest of training, or from moving
    its masks."""
    encoder = SentenceEncoder(make_bert(), word_tokenizer).train()
    state = torch.get_rng_state()
    first = encoder.encode(SENTENCES)
    assert encoder.training
    assert torch.equal(state, torch.get_rng_state())
    assert torch.equal(first, encoder.encode(SENTENCES))
    assert first.dtype == torch.float32


def test_a_part_that_was_in_eval_mode_stays_so(make_bert, word_tokenizer):
    """Prevents a frozen part from getting dropout after the first evaluation."""
    encoder = SentenceEncoder(make_bert(), word_tokenizer).train()
    encoder.backbone.embeddings.eval()
    encoder.encode(SENTENCES)
    assert encoder.training
    assert encoder.backbone.encoder.training
    assert not encoder.backbone.embeddings.training
    assert not encoder.backbone.embeddings.dropout.training


def test_vectors_can_be_constants_in_a_loss(make_bert, word_tokenizer):
    """A distillation teacher's vectors made in inference mode would make backward() raise."""
    teacher = SentenceEncoder(make_bert(), word_tokenizer).encode(SENTENCES)
    student = torch.ones_like(teacher, requires_grad=True)
    (student * teacher).sum().backward()
    assert torch.equal(student.grad, teacher)


def test_a_batch_wider_than_the_positions_is_refused(make_tower):
    """Prevents an index error on a CPU, and a crash of the device on a GPU."""
    model = make_tower()
    ids = torch.full((2, 70), 7)
    longest = longest_input(model)
    message = f"the batch is 70 tokens wide, the backbone reads at most {longest}; truncate it"
    for encoder in (SentenceEncoder(model, None), TwinEncoder(model, make_tower(1))):
        with pytest.raises(ModelError, match=message):
            encoder(ids)


def test_a_sentence_longer_than_the_backbone_reads_is_cut(make_tower, word_tokenizer):
    """RoBERTa's positions start after the padding index: 66 positions hold 65 tokens with padding
    index 0."""
    model = make_tower()
    assert longest_input(model) == (66 if model.config.model_type == "bert" else 65)
    encoder = SentenceEncoder(model, word_tokenizer)
    assert encoder.encode(["dog " * 500]).isfinite().all()
    assert torch.equal(encoder.encode(["dog " * 500], max_length=4), encoder.encode(["dog dog"]))


def test_what_is_no_list_of_sentences_is_refused(make_bert, word_tokenizer):
    """Prevents one string from being encoded letter by letter."""
    encoder = SentenceEncoder(make_bert(), word_tokenizer)
    assert encoder.encode([]).shape == (0, 32)
    unchecked = inspect.unwrap(encode)  # without the tests' own type checker
    with pytest.raises(DataError, match=r"got one string; wrap it: encode\(\[sentence\]\)"):
        unchecked(encoder, "a dog")
    with pytest.raises(DataError, match="got NoneType at position 1: None"):
        unchecked(encoder, ["a dog", None])
    with pytest.raises(
        DataError, match="max_length=2 leaves no room for a word beside 2 special tokens"
    ):
        encoder.encode(["a dog"], max_length=2)
    with pytest.raises(DataError, match="built without a tokenizer"):
        SentenceEncoder(make_bert(), None).encode(["a dog"])
