"""`cselab.load`: folders of ours, of sentence-transformers and of transformers; ensembles."""

import json
import shutil

import pytest
import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import (
    Dense,
    Normalize,
    Pooling,
    Transformer,
)
from torch import nn
from transformers import AutoConfig, AutoModel, AutoTokenizer

import cselab
from cselab.analysis import cls_energy
from cselab.data.sources import embedded_dir
from cselab.errors import ModelError
from cselab.methods import StepContext, create
from cselab.models import (
    POOLINGS,
    Ensemble,
    SentenceEncoder,
    TwinEncoder,
    export,
    load_backbone,
    load_tokenizer,
    pool,
    with_pooling,
)

SENTENCES = ["a man is playing guitar .", "the dog", "the big red ball was not under the table ."]


@pytest.fixture
def tower(make_bert, word_tokenizer):
    """`tower(seed)`: a random single tower."""
    return lambda seed=1, **options: SentenceEncoder(make_bert(seed), word_tokenizer, **options)


@pytest.fixture
def stock(make_bert, word_tokenizer, tmp_path):
    """A folder of transformers: backbone and tokenizer, no card."""
    make_bert(1).save_pretrained(tmp_path / "stock")
    word_tokenizer.save_pretrained(tmp_path / "stock")
    return tmp_path / "stock"


@pytest.fixture
def foreign(stock, tmp_path):
    """`foreign(*modules)`: a folder that sentence-transformers wrote, and what it encodes."""

    def make(*modules, **options):
        model = SentenceTransformer(
            modules=[Transformer(str(stock)), *modules], device="cpu", **options
        )
        shutil.rmtree(tmp_path / "foreign", ignore_errors=True)
        model.save_pretrained(str(tmp_path / "foreign"))
        return tmp_path / "foreign", model.encode(SENTENCES, convert_to_tensor=True)

    return make


def same(found, expected):
    torch.testing.assert_close(found, expected, atol=1e-5, rtol=0)


def test_an_ensemble_is_the_weighted_sum(tower, make_roberta, word_tokenizer):
    """Prevents a mean for EDFSE's sum, members that are weighted in another order, and a w of +UC
    that goes to the twin (METHODS 4: (1 - w) twin + w other)."""
    encoders = [tower(1), tower(2), SentenceEncoder(make_roberta(3), word_tokenizer)]
    one, two, three = (encoder.encode(SENTENCES) for encoder in encoders)
    same(Ensemble(encoders).encode(SENTENCES), one + two + three)
    same(Ensemble(encoders, [1.0, 2.0, 0.5]).encode(SENTENCES), one + 2 * two + three / 2)
    nested = Ensemble([Ensemble(encoders[:2]), encoders[2]])
    same(nested.encode(SENTENCES), one + two + three)
    twin = TwinEncoder(encoders[0].backbone, encoders[1].backbone, tokenizer=word_tokenizer).eval()
    uc = Ensemble.uc(twin, encoders[2], weight=0.7)
    same(uc.encode(SENTENCES), 0.3 * twin.encode(SENTENCES) + 0.7 * three)


def test_an_ensemble_is_saved_with_its_members_and_weights(tower, make_roberta, tmp_path):
    """Prevents members in another order (member_10 before member_2), weights that are lost, a twin
    that comes back as one tower, and a second tokenizer that is dropped."""
    one = tower(1, pooling="mean")
    twin = TwinEncoder(tower(2).backbone, tower(3).backbone, tokenizer=one.tokenizer)
    inner = Ensemble([twin, SentenceEncoder(make_roberta(4), one.tokenizer)], [0.3, 0.7])
    members = [one, inner, *(tower(seed) for seed in range(5, 14))]
    ensemble = Ensemble(members, [0.1 * i for i in range(1, 12)])
    ensemble.save_pretrained(tmp_path / "sum")
    found = cselab.load(tmp_path / "sum")
    same(found.encode(SENTENCES), ensemble.encode(SENTENCES))
    assert found.weights == ensemble.weights
    assert not any(part.training for part in found.modules())
    (tmp_path / "sum" / "member_2" / "cselab.json").unlink()
    with pytest.raises(ModelError, match="no cselab.json in .*member_2"):
        cselab.load(tmp_path / "sum")


def test_stock_folders_have_the_usual_pooling(stock, make_bert, tower):
    """Prevents a mean for [CLS], and a decoder that is read by its first token, which sees no other
    word."""
    same(cselab.load(stock).encode(SENTENCES), tower(1).encode(SENTENCES))
    same(
        cselab.load(stock, pooling="first_last").encode(SENTENCES),
        tower(1, pooling="first_last").encode(SENTENCES),
    )
    llama = embedded_dir() / "backbones" / "tiny-llama"
    assert cselab.load(llama).pooling == "last_token"
    assert cselab.load(llama, pooling="mean").pooling == "mean"


def test_a_checkpoint_without_safetensors(stock, tower, tmp_path):
    """Prevents the papers' public checkpoints from being refused, and code that runs when a file is
    read."""
    (stock / "model.safetensors").unlink()
    with pytest.raises(ModelError, match=r"expected a model\.safetensors that fits"):
        cselab.load(stock)
    encoder = tower(1)
    torch.save(encoder.backbone.state_dict(), stock / "pytorch_model.bin")
    same(cselab.load(stock).encode(SENTENCES), encoder.encode(SENTENCES))
    torch.save({"weights": SentenceTransformer}, stock / "pytorch_model.bin")
    with pytest.raises(ModelError, match=r"expected a pytorch_model\.bin of tensors alone"):
        cselab.load(stock)


@pytest.mark.parametrize("mode", ["cls", "mean", "lasttoken"])
def test_models_of_sentence_transformers_encode_the_same(foreign, mode):
    """Prevents a pooling that is ignored: a public checkpoint would be scored as another model."""
    folder, expected = foreign(Pooling(32, mode))
    same(cselab.load(folder).encode(SENTENCES), expected)
    name = {"cls": "cls_token", "mean": "mean_tokens"}.get(mode, mode)
    old = {"word_embedding_dimension": 32, f"pooling_mode_{name}": True}
    (folder / "1_Pooling" / "config.json").write_text(json.dumps(old))
    same(cselab.load(folder).encode(SENTENCES), expected)


def test_a_dense_module_is_the_pooler(foreign, stock):
    """Prevents the backbone's own, other pooler in place of the Dense module."""
    dense = Dense(32, 32)
    folder, expected = foreign(Pooling(32, "cls"), dense)
    found = cselab.load(folder)
    assert found.pooling == "pooler"
    same(found.encode(SENTENCES), expected)


def test_a_default_prompt_is_kept(foreign):
    """Prevents sentences without the prompt that the model was trained with."""
    folder, expected = foreign(
        Pooling(32, "mean"), prompts={"query": "the woman "}, default_prompt_name="query"
    )
    same(cselab.load(folder).encode(SENTENCES), expected)


def pooler():
    return Pooling(32, "cls"), Dense(32, 32)


@pytest.mark.parametrize("modules", [lambda: (Pooling(32, "mean"),), pooler])
def test_a_normalized_model_is_a_sentence_encoder(foreign, tmp_path, modules):
    """Prevents all-MiniLM from being closed to attention and norms, and lengths that saving or an
    export loses."""
    folder, expected = foreign(*modules(), Normalize())
    encoder = cselab.load(folder)
    assert isinstance(encoder, SentenceEncoder)
    encoder.save_pretrained(tmp_path / "saved")
    export(encoder, tmp_path / "exported")
    exported = SentenceTransformer(str(tmp_path / "exported"), device="cpu")
    same(exported.encode(SENTENCES, convert_to_tensor=True), expected)
    for one in (encoder, cselab.load(tmp_path / "saved"), cselab.load(tmp_path / "exported")):
        same(one.encode(SENTENCES), expected)


@pytest.mark.parametrize(
    "modules",
    [
        lambda: (Pooling(32, "max"),),
        lambda: (Pooling(32, ("cls", "mean")), Normalize()),
        lambda: (Pooling(32, "cls"), Dense(32, 16)),
        lambda: (Pooling(32, "cls"), Dense(32, 32, bias=False)),
        lambda: (Pooling(32, "cls"), Dense(32, 32, activation_function=torch.nn.Identity())),
        lambda: (Pooling(32, "mean"), Dense(32, 32)),
    ],
)
def test_modules_without_a_counterpart_are_run_by_their_library(foreign, modules):
    """Prevents a model that is scored without its last module, and one that cannot be opened."""
    folder, expected = foreign(*modules())
    encoder = cselab.load(folder)
    same(encoder.encode(iter(SENTENCES)), expected)
    assert encoder.encode([]).shape == (0, expected.shape[1])
    with pytest.raises(ModelError, match="its folder is the export"):
        export(encoder, folder / "exported")


FAMILIES = {
    "distilbert": {"dim": 32, "hidden_dim": 48, "n_heads": 4, "n_layers": 2},
    "mpnet": {},
    "electra": {"embedding_size": 16},
    "deberta-v2": {},
    "modernbert": {"cls_token_id": 1, "sep_token_id": 2, "bos_token_id": 1, "eos_token_id": 2},
    "albert": {"embedding_size": 16},
}
SHAPE = {"hidden_size": 32, "intermediate_size": 48, "num_attention_heads": 4}


def _save_family(family, tokenizer, folder):
    """A small random model and its tokenizer in a folder."""
    shape = {} if family == "distilbert" else {**SHAPE, "num_hidden_layers": 2}
    sizes = {"vocab_size": len(tokenizer), "pad_token_id": tokenizer.pad_token_id}
    config = AutoConfig.for_model(family, **shape, **sizes, **FAMILIES[family])
    model = AutoModel.from_config(config).eval()
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return model


@pytest.mark.parametrize("family", FAMILIES)
def test_every_family_of_encoders_is_opened(family, word_tokenizer, tmp_path):
    """Prevents an architecture that only its own library can score, and one with random weights."""
    model = _save_family(family, word_tokenizer, tmp_path)
    batch = word_tokenizer(SENTENCES, padding=True, return_tensors="pt")
    names = {name: batch[name] for name in ("input_ids", "attention_mask")}
    with torch.no_grad():
        states = model(**names).last_hidden_state
    for how in ("cls", "mean"):
        expected = pool(states, batch["attention_mask"], how)
        same(cselab.load(tmp_path, pooling=how).encode(SENTENCES), expected)
    peer = SentenceTransformer(modules=[Transformer(str(tmp_path)), Pooling(32, "mean")])
    expected = peer.encode(SENTENCES, convert_to_tensor=True).cpu()
    same(cselab.load(tmp_path, pooling="mean").encode(SENTENCES), expected)
    weights = model.state_dict()
    torch.save(dict(list(weights.items())[1:]), tmp_path / "pytorch_model.bin")
    (tmp_path / "model.safetensors").unlink()
    with pytest.raises(ModelError, match="lacks weights"):
        cselab.load(tmp_path)


@pytest.mark.parametrize("family", FAMILIES)
def test_towers_of_every_family_train_and_twins_of_those_that_can_be_crossed(
    family, word_tokenizer, tmp_path
):
    """Prevents a family that only encodes, and a twin of layers that have no queries to cross."""
    _save_family(family, word_tokenizer, tmp_path)
    method = create("simcse", folders=[tmp_path])
    assert {part.p for part in method.modules() if isinstance(part, nn.Dropout)} <= {0.1}
    batch = dict(word_tokenizer(2 * SENTENCES, padding=True, return_tensors="pt"))
    context = StepContext.at(seed=0, step=0)
    sum(method.losses(batch, context).values()).backward()
    gradients = [p.grad for p in method.encoder.parameters() if p.grad is not None]
    assert all(grad.isfinite().all() for grad in gradients)
    assert any(grad.abs().sum() > 0 for grad in gradients)
    towers = [load_backbone(tmp_path) for _ in range(2)]
    if family == "electra":
        vectors = TwinEncoder(*towers, cael=(2,), tokenizer=word_tokenizer).encode(SENTENCES)
        same(vectors, 2 * cselab.load(tmp_path).encode(SENTENCES))
    else:
        with pytest.raises(ModelError, match="a twin needs layers of bert, electra"):
            TwinEncoder(*towers)


@pytest.mark.parametrize("kind", ["simcse", "infocse", "diffcse"])
def test_checkpoints_as_their_authors_saved_them_are_read_by_cls(kind, stock, make_bert):
    """Prevents a head that is read as the pooler, and one that hides the weights: SimCSE saves its
    head as the pooler; the others prefix the encoder's names and have further heads."""
    plain = cselab.load(stock).encode(SENTENCES)
    weights = make_bert(1).state_dict()
    if kind == "simcse":
        weights["pooler.dense.weight"] = torch.randn(32, 32)
    else:
        weights = {f"bert.{name}": value for name, value in weights.items() if "pooler" not in name}
        further = {
            "infocse": ("c_head.0.attention.self.query.weight", "cls.predictions.bias"),
            "diffcse": ("mlp.net.0.weight", "discriminator.bert.pooler.dense.weight"),
        }
        weights |= dict.fromkeys(further[kind], torch.randn(32, 32))
    (stock / "model.safetensors").unlink()
    torch.save(weights, stock / "pytorch_model.bin")
    same(cselab.load(stock).encode(SENTENCES), plain)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("modules.json", "{"),
        ("modules.json", '[{"idx": 0, "path": "", "type": "theirs.Transformer"}]'),
        ("config_sentence_transformers.json", '{"default_prompt_name": "other", "prompts": {}}'),
        ("2_Dense/model.safetensors", "x"),
    ],
)
def test_a_damaged_folder_of_modules_is_one_line(foreign, name, content):
    """Prevents a traceback of json, of safetensors or of sentence-transformers."""
    folder, _ = foreign(*pooler())
    assert (folder / name).is_file()
    (folder / name).write_text(content)
    with pytest.raises(ModelError, match="sentence-transformers does not load .*get it again"):
        cselab.load(folder)


@pytest.mark.parametrize("how", [*POOLINGS, "pooler"])
def test_another_pooling_of_finished_encoders(tower, word_tokenizer, how):
    """Prevents copies of weights, a twin whose second tower keeps [CLS], and lost weights of an
    ensemble."""
    one, two = tower(1), tower(2)
    twin = TwinEncoder(one.backbone, two.backbone, tokenizer=word_tokenizer, cael=(2, 4))
    batch = word_tokenizer(SENTENCES, padding=True, return_tensors="pt")

    def reference(backbone):
        with torch.no_grad():
            output = backbone(
                input_ids=batch["input_ids"],
                attention_mask=batch["attention_mask"],
                output_hidden_states=True,
            )
        if how == "pooler":
            return output.pooler_output
        return pool(output.hidden_states, batch["attention_mask"], how)

    of_one, of_two = reference(one.backbone), reference(two.backbone)
    same(with_pooling(one, how).encode(SENTENCES), of_one)
    same(with_pooling(twin, how).encode(SENTENCES), of_one + of_two)
    ensemble = Ensemble([twin, two], [0.3, 0.7])
    same(with_pooling(ensemble, how).encode(SENTENCES), 0.3 * (of_one + of_two) + 0.7 * of_two)
    assert with_pooling(one, how).backbone is one.backbone
    if how == "cls":
        assert with_pooling(twin, how) is twin
    assert one.pooling == "cls"


def test_the_length_of_a_sentence_transformers_model_is_kept(foreign, tower, tmp_path):
    """Prevents vectors of text that the model was never meant to read (cosines differ by 0.08)."""
    folder, _ = foreign(Pooling(32, "mean"))
    long = ["the dog is not in the park , the cat is under the table ."]
    expected = tower(1, pooling="mean").encode(long, max_length=8)
    tokenizer = folder / "tokenizer_config.json"  # where today's versions write it
    settings = json.loads(tokenizer.read_text())
    tokenizer.write_text(json.dumps({**settings, "model_max_length": 8}))
    same(cselab.load(folder).encode(long), expected)
    tokenizer.write_text(json.dumps(settings))
    (folder / "sentence_bert_config.json").write_text('{"max_seq_length": 8}')
    encoder = cselab.load(folder)
    encoder.save_pretrained(tmp_path / "saved")
    export(encoder, tmp_path / "exported")
    Ensemble([encoder]).save_pretrained(tmp_path / "sum")
    for name in ("saved", "exported", "sum"):
        same(cselab.load(tmp_path / name).encode(long), expected)
    model = SentenceTransformer(str(tmp_path / "exported"), device="cpu")
    same(model.encode(long, convert_to_tensor=True), expected)
    same(encoder.encode(long, max_length=20), tower(1, pooling="mean").encode(long))


def test_padding_is_on_the_right_whatever_the_tokenizer_says(stock, tower, make_bert, tmp_path):
    """Prevents other vectors for the short sentences of a batch: [CLS] would not come first."""
    path = stock / "tokenizer_config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "padding_side": "left"}))
    expected = tower(1).encode(SENTENCES)
    same(cselab.load(stock).encode(SENTENCES), expected)
    given = AutoTokenizer.from_pretrained(stock)
    assert given.padding_side == "left"
    by_hand = SentenceEncoder(make_bert(1), given)
    same(by_hand.encode(SENTENCES), expected)
    energy = cls_energy(make_bert(1), AutoTokenizer.from_pretrained(stock), SENTENCES)
    same(energy, cls_energy(make_bert(1), tower(1).tokenizer, SENTENCES))
    export(by_hand, tmp_path / "exported")
    model = SentenceTransformer(str(tmp_path / "exported"), device="cpu")
    same(model.encode(SENTENCES, convert_to_tensor=True), expected)


def test_what_load_reads_is_read_as_a_backbone(stock, tower, word_tokenizer, tmp_path):
    """Prevents `-p backbone=` from refusing SimCSE's checkpoints (a pickle, with its MLP) and
    sentence-transformers' folders with a folder for each module."""
    weights = {f"bert.{key}": value for key, value in tower(1).backbone.state_dict().items()}
    torch.save({**weights, "mlp.dense.weight": torch.zeros(32, 32)}, stock / "pytorch_model.bin")
    (stock / "model.safetensors").unlink()
    (tmp_path / "modules").mkdir()
    shutil.copytree(stock, tmp_path / "modules" / "0_Transformer")
    for folder in (stock, tmp_path / "modules"):
        read = SentenceEncoder(load_backbone(folder), load_tokenizer(folder))
        same(read.encode(SENTENCES), tower(1).encode(SENTENCES))
    # as the rehearsal of a training leaves it
    (tmp_path / "modules" / "cselab.json").write_text(
        '{"kind": "sentence", "pooling": "cls", "prompt": ""}'
    )
    same(cselab.load(tmp_path / "modules").encode(SENTENCES), tower(1).encode(SENTENCES))
