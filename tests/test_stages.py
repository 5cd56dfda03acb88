"""The workbook's shared steps: one training however often it is asked for, the right inputs, recorded scores."""

import gzip
import json
import shutil
from pathlib import Path

import pytest
import torch
from datasets import Dataset

import cselab
from cselab import stages
from cselab.data.sts import load_sts
from cselab.errors import DataError, ModelError, SettingsError
from cselab.evaluation import StsReport
from cselab.methods import create
from cselab.models import Ensemble, SentenceEncoder, TwinEncoder, load_backbone
from cselab.settings import Settings
from cselab.stages.training import _fingerprint
from cselab.systems import SINGLE, check, system

TINY = dict(sentences=200, stage1_steps=2, stage1_batch_size=8, stage1_eval_every=2, caels=2,
            stage2_steps=2, stage2_batch_size=8, stage2_eval_every=2, device="cpu", seed=3)  # fmt: skip


@pytest.fixture
def open_lab(tmp_path, monkeypatch, small_backbone):
    for variable in ("CSELAB_RUN_DIR", "CSELAB_OUTPUTS", "CSELAB_DATA"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setattr("cselab.stages.training.dev_score", lambda lab, encode: 0.0)  # the dev split has 1,500 pairs
    return lambda **changes: cselab.open_lab(
        "test", **{"outputs": tmp_path, "backbone": small_backbone, **TINY, **changes}
    )


def weights(encoder):
    return torch.cat([p.detach().flatten() for p in encoder.parameters()])


def test_rows_of_a_text_and_its_round_trip():
    """Prevents a pair mode whose second view is the sentence itself, or a replace mode that keeps the text."""
    rows = Dataset.from_dict({"input_ids": [[1], [2, 2]], "length": [1, 2]})
    trips = Dataset.from_dict({"input_ids": [[7], [8, 8]], "length": [1, 2]})
    assert stages.combine(rows, trips, "append")["input_ids"][:] == [[1], [2, 2], [7], [8, 8]]
    assert stages.combine(rows, trips, "replace")["input_ids"][:] == [[7], [8, 8]]
    pair = stages.combine(rows, trips, "pair")
    assert pair["input_ids"][:] == [[1], [2, 2]]
    assert pair["input_ids_b"][:] == [[7], [8, 8]]


@pytest.mark.parametrize(("mode", "times"), [("none", 1), ("twice", 2)])
def test_the_controls_of_round_trips_hold_the_text_alone(open_lab, mode, times):
    """Prevents a control that sees round trips, and one that has fewer rows than what it controls for."""
    lab = open_lab(rtt_mode=mode)
    tokenizer = stages.backbone_encoder(lab).tokenizer
    plain = stages.training_rows(open_lab(), tokenizer, None, 32)["input_ids"][:]
    assert stages.training_rows(lab, tokenizer, "fr", 32)["input_ids"][:] == times * plain


def test_the_round_trips_of_the_text_line_up_with_it(open_lab):
    from cselab.data.round_trip import RoundTrip

    lab = open_lab()
    text = list(stages.sentences(lab))
    assert stages.round_trips(lab, "fr") == list(RoundTrip("fr")(text))


def test_a_tower_is_trained_once_and_found_again(open_lab, capsys):
    """Prevents notebook 03 from training its own towers after notebook 02 has."""
    first = stages.tower(open_lab(), "i")
    capsys.readouterr()
    again = stages.tower(open_lab(tasks="World"), "i")  # what is only evaluated does not train anew
    assert "computed" not in capsys.readouterr().out
    assert torch.equal(weights(first.encoder), weights(again.encoder))
    assert [row["step"] for row in first.fit["history"]] == [0, 2]


@pytest.mark.parametrize("change", [{"temperature": 0.1}, {"seed": 4}, {"pivot_i": "nl"}, {"stage1_steps": 4}])
def test_what_a_tower_depends_on_trains_another(open_lab, change):
    """Prevents a sweep whose every point is the first point's model."""
    one, other = (weights(stages.tower(open_lab(**c), "i").encoder) for c in ({}, change))
    assert not torch.equal(one, other)


def test_the_towers_of_a_seed_differ_and_add_up(open_lab):
    lab = open_lab()
    one, two = (stages.tower(lab, which).encoder for which in ("i", "ii"))
    assert not torch.equal(weights(one), weights(two))
    text = ["The dog is sleeping.", "A man is playing guitar."]
    expected = one.encode(text) + two.encode(text)
    torch.testing.assert_close(stages.tower_sum(lab).encode(text), expected)
    others = stages.tower_sum(lab, "imsimcse")
    assert not torch.equal(weights(others.tower_i), weights(others.tower_ii))
    assert not torch.equal(weights(others.tower_i), weights(one))


@pytest.mark.parametrize("name", ["esimcse", "diffcse", "infocse"])
def test_the_fair_ensemble_of_a_baseline_is_two_of_its_own_towers(open_lab, small_pretrained, name):
    """Prevents a sum of one tower twice, one that cannot encode, and one of SimCSE's towers under another name."""
    lab = open_lab(backbone=small_pretrained, sentences=40)
    both = system(f"{name}_towers").build(lab)
    assert both.encode(["The dog is sleeping."]).isfinite().all()
    assert not torch.equal(weights(both.tower_i), weights(both.tower_ii))
    assert not torch.equal(weights(both.tower_i), weights(stages.tower(lab, "i").encoder))


def test_stage_two_starts_from_the_towers_and_takes_overrides(open_lab, capsys):
    lab = open_lab()
    plain = stages.joint(lab, "jtcse", stage2_learning_rate=1e-12)
    torch.testing.assert_close(weights(plain.encoder), weights(stages.tower_sum(lab)), atol=1e-6, rtol=0)
    assert plain.encoder.cael == (2, 4)
    assert stages.joint(lab, "jtcse", caels=4).encoder.cael == (1, 2, 3, 4)
    assert stages.joint(lab, "tncse").encoder.cael == ()


@pytest.mark.parametrize("change", [
    {"terms": "nce,icnce"}, {"caels": 4}, {"cross_stream": "last_only"}, {"released_rows": "all"}, {"stage2_dropout": 0.3},
])  # fmt: skip
def test_an_ablation_of_stage_two_finds_the_towers_it_has(open_lab, change, capsys):
    """Prevents eight loss ablations from training sixteen towers, and stage 1 from meeting a term it does not have."""
    plain = weights(stages.joint(open_lab(), "jtcse").encoder)
    capsys.readouterr()
    other = weights(stages.joint(open_lab(), "jtcse", **change).encoder)
    assert capsys.readouterr().out.count("computed") == 1
    assert not torch.equal(plain, other)


def test_single_tower_methods_and_their_terms(open_lab):
    """Prevents a term that does not reach the training."""
    lab = open_lab()
    one, other = (stages.single(lab, "imsimcse", terms=terms) for terms in (None, "off_info,dcl:5"))
    assert {"off_info", "dcl"} <= one.fit["history"][-1].keys()
    assert not torch.equal(weights(one.encoder), weights(other.encoder))


@pytest.mark.parametrize("name", sorted(set(SINGLE) - {"simcse", "imsimcse", "simcse_noise"}))
def test_every_baseline_is_trained_and_found_again(open_lab, small_pretrained, name, capsys):
    """Prevents a method that cannot be fitted, saved or opened, and one whose own settings do not train it anew."""
    small = dict(backbone=small_pretrained, sentences=40, knobs="whitening_size:2")
    first = system(name).build(open_lab(**small))
    assert first.encode(["The dog is sleeping."]).isfinite().all()
    capsys.readouterr()
    assert torch.equal(weights(system(name).build(open_lab(**small))), weights(first))
    assert "computed" not in capsys.readouterr().out
    other = system(name).build(open_lab(**small, terms="nce,dcl:5"))
    assert not torch.equal(weights(other), weights(first))


def test_an_outsider_keeps_its_own_terms(open_lab, capsys):
    """Prevents a twin's terms from reaching the outsider of UC, which has them not, and a sweep that trains it twice."""
    shared = system("simcse_supervised")
    lab = open_lab(terms="nce,icnce,ictm:0.1")
    shared.build(open_lab(**shared.common(lab.settings).model_dump(include={"terms"})))
    capsys.readouterr()
    assert system("uc").build(lab).encode(["The dog is sleeping."]).isfinite().all()
    assert not [line for line in capsys.readouterr().out.splitlines() if "supervised" in line and "computed" in line]


def test_rankcse_learns_from_the_two_towers(open_lab, small_pretrained, capsys):
    """Prevents other teachers that leave the student as it was."""
    one = system("rankcse").build(open_lab(backbone=small_pretrained, sentences=40))
    assert capsys.readouterr().out.count("computed") >= 3  # two towers, and it
    other = system("rankcse").build(open_lab(backbone=small_pretrained, sentences=40, pivot_ii="nl"))
    assert not torch.equal(weights(one), weights(other))


@pytest.mark.parametrize("mode", ["append", "pair"])
def test_the_fair_ensemble_of_rankcse_learns_from_its_round_trips(open_lab, small_pretrained, mode):
    """Prevents a tower that takes no text longer than its teachers' targets, and two towers that are one."""
    sum_of = system("rankcse_towers").build(open_lab(backbone=small_pretrained, sentences=40, rtt_mode=mode))
    assert not torch.equal(weights(sum_of.tower_i), weights(sum_of.tower_ii))


@pytest.mark.parametrize(("mode", "expected"), [
    ("append", ["text", "trip"]), ("replace", ["trip"]), ("pair", ["text"]), ("twice", ["text", "text"]),
])  # fmt: skip
def test_further_columns_follow_their_sentences(open_lab, mode, expected):
    """Prevents round trips that are taught the vectors of the sentences they came from."""
    lab = open_lab(rtt_mode=mode, sentences=30)
    kinds = {stages.sentences(lab).fingerprint: "text"}

    def widen(rows, corpus):
        return rows.add_column("of", [kinds.get(corpus.fingerprint, "trip")] * len(rows))

    rows = stages.training_rows(lab, stages.backbone_encoder(lab).tokenizer, "fr", 32, widen)
    assert rows["of"][:] == [kind for kind in expected for _ in range(30)]


def test_supervised_methods_learn_from_the_worlds_triplets(open_lab, capsys):
    """Prevents a decoder's setting from retraining the encoder, and one that does not retrain the decoder."""
    small = dict(triplets=40, supervised_steps=2, supervised_batch_size=8, supervised_eval_every=2)
    lab = open_lab(**small)
    assert len(stages.nli_triplets(lab)) == 40
    first = stages.supervised(lab, "bellm", lora_rank=4)
    assert first.fit["history"][-1]["triplet"] > 0
    assert first.encoder.prompt == "representative"
    assert first.encoder.backbone.config.bidirectional_layers == [6]
    other = stages.supervised(lab, "bellm", lora_rank=4, bidirectional="all", decoder_pooling="mean")
    assert not torch.equal(weights(first.encoder), weights(other.encoder))
    stages.supervised(lab, "simcse_supervised")
    capsys.readouterr()
    again = stages.supervised(open_lab(**small, lora_rank=8, prompt="summarize"), "simcse_supervised")
    assert "computed" not in capsys.readouterr().out
    assert again.encoder.prompt == ""


def test_the_folders_nli_comes_before_the_worlds(open_lab, tmp_path):
    import gzip

    (tmp_path / "nli").mkdir()
    with gzip.open(tmp_path / "nli" / "toy.tsv.gz", "wt") as file:
        file.write("premise\thypothesis\tlabel\np\ty\tentailment\np\tn\tcontradiction\n")
    (found,) = stages.nli_triplets(open_lab(nli="toy", data_dir=tmp_path))
    assert (found.anchor, found.entailed, found.contradicted) == ("p", "y", "n")


def test_the_translator_is_part_of_what_a_tower_depends_on(open_lab, tmp_path, capsys):
    """Prevents the lexical pivot's round trips from standing for a translator's."""
    lab = open_lab()
    text = list(stages.sentences(lab))
    path = tmp_path / "trips.tsv"
    path.write_text("sentence\tround_trip\n" + "".join(f"{line}\tback {i}\n" for i, line in enumerate(text)))
    prepared = open_lab(translator=str(path))
    assert stages.round_trips(prepared, "fr") == [f"back {i}" for i in range(len(text))]
    assert stages.round_trips(lab, "fr") != stages.round_trips(prepared, "fr")
    assert not torch.equal(weights(stages.tower(lab, "i").encoder), weights(stages.tower(prepared, "i").encoder))


@pytest.mark.parametrize("kind", ["head", "lora"])
def test_what_a_method_draws_is_the_seeds(open_lab, tmp_path, kind):
    """Prevents a head or adapters that depend on whatever drew random numbers before, so on the order of notebooks."""
    found = []
    for i in range(2):
        torch.manual_seed(i)
        lab = open_lab(outputs=tmp_path / str(i), triplets=20, supervised_steps=2, supervised_batch_size=8)
        torch.manual_seed(i)
        if kind == "head":
            found.append(stages.single(lab, "simcse", head="mlp_train_only").encoder)
        else:
            found.append(stages.supervised(lab, "bellm", lora_rank=4).encoder)
    assert torch.equal(*map(weights, found))


def test_edfse_is_the_sum_of_towers_of_different_pivots(open_lab):
    lab, text = open_lab(), ["The dog is sleeping."]
    ensemble = stages.edfse(lab, ("fr", "ru", "nl"))
    assert len({weights(member).sum().item() for member in ensemble.members}) == 3
    for member, which in zip(ensemble.members, ("i", "ii"), strict=False):  # the lab's own pivots: no tower twice
        assert torch.equal(weights(member), weights(stages.tower(lab, which).encoder))
    torch.testing.assert_close(ensemble.encode(text), sum(member.encode(text) for member in ensemble.members))


def test_a_student_learns_its_teacher_and_not_anothers(open_lab):
    """Prevents a student of the wrong teacher from being found, and targets in another order than the sentences."""
    far = dict(stage1_learning_rate_i=1e-3, stage1_learning_rate_ii=1.3e-3)  # teachers that left the backbone
    lab = open_lab(distil_steps=60, distil_learning_rate=3e-4, stage1_eval_every=60, **far)
    teachers = [stages.tower_sum(lab), stages.edfse(lab, ("nl",))]
    text = list(stages.sentences(lab))[:50]
    fresh = stages.backbone_encoder(lab).encode(text)
    students = [stages.distilled(lab, teacher, "d").encoder.encode(text) for teacher in teachers]
    for student, teacher in zip(students, teachers, strict=True):
        goal = teacher.encode(text)
        assert (student - goal).square().mean() < 0.95 * (fresh - goal).square().mean()
    assert not torch.allclose(*students)


def test_only_the_worlds_tests_are_cut(open_lab, tmp_path):
    """Prevents scores on a part of an official test, and a cut that loses a phenomenon."""
    lab = open_lab(world_pairs=50)
    (cut,) = stages.test_data(lab)
    whole = load_sts("World")
    assert len(cut) == 50
    assert set(cut.subsets) == set(whole.subsets)
    (tmp_path / "sts").mkdir()
    rows = [f"a man sits\ta man stands {i}\t{i % 6}" for i in range(1379)]
    with gzip.open(tmp_path / "sts" / "stsb-test.tsv.gz", "wt") as file:
        file.write("\n".join(["sentence1\tsentence2\tscore", *rows]) + "\n")
    (official,) = stages.test_data(open_lab(world_pairs=50, data_dir=tmp_path, tasks="STSBenchmark"))
    assert len(official) == 1379


def test_scores_are_recorded_with_where_they_come_from(open_lab, monkeypatch):
    from cselab.data.world import sts_pairs

    monkeypatch.setattr("cselab.data.world.sts_pairs", lambda split: sts_pairs(split)[:60])
    lab = open_lab()
    report = stages.evaluate(lab, "untrained", stages.backbone_encoder(lab).encode)
    rows = [json.loads(line) for line in (lab.run_dir / "results.jsonl").read_text().splitlines()]
    row = next(row for row in rows if row["task"] == "World")
    assert (row["method"], row["seed"], row["profile"], row["notebook"]) == ("untrained", 3, "tiny", "test")
    assert row["score"] == pytest.approx(report.tasks["World"].spearman)
    assert {"settings", "torch", "transformers", "hardware"} <= row.keys()


def test_a_backbone_that_is_nowhere(open_lab):
    """Prevents a minute of waiting for a hub that nobody allowed."""
    with pytest.raises(
        SettingsError, match="no 'tiny-bret' here; did you mean 'tiny-bert'.*or give a folder, or set hub=True"
    ):
        stages.backbone(open_lab(backbone="tiny-bret"))


def test_the_shipped_backbone_has_what_the_methods_read():
    """Prevents shipping weights whose pooler nobody trained, a tokenizer of [UNK]s, or a file too large for a clone."""
    from cselab.data.sources import embedded_dir
    from cselab.models import load_backbone, load_tokenizer

    folder = embedded_dir() / "backbones" / "tiny-bert"
    model = load_backbone(folder, pooler="required")
    assert (model.config.num_hidden_layers, model.config.hidden_size) == (6, 192)
    tokenizer = load_tokenizer(folder)
    ids = tokenizer("A man is playing a guitar in the garden.")["input_ids"]
    assert tokenizer.unk_token_id not in ids
    assert len(ids) < 14
    assert sum(path.stat().st_size for path in folder.iterdir()) < 8e6


def test_the_shipped_decoder_has_learned_english():
    """Prevents shipping weights that a wrong mask or an untied head made useless, or a file too large for a clone."""
    import json

    from transformers import AutoModelForCausalLM

    from cselab.data.sources import embedded_dir
    from cselab.models import load_tokenizer

    folder = embedded_dir() / "backbones" / "tiny-llama"
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
    ids = load_tokenizer(folder)("The capital of the country is a city in the north.", return_tensors="pt")["input_ids"]
    shuffled = torch.cat([ids[:, :1], ids[:, 1:-1].flip(1), ids[:, -1:]], dim=1)
    with torch.no_grad():
        loss, backwards = (model(input_ids=x, labels=x).loss.item() for x in (ids, shuffled))
    card = json.loads((folder / "card.json").read_text())["measured"]
    assert loss < card["next-token loss"] + 1  # nats; a uniform guess costs 9
    assert backwards > loss + 1
    assert sum(path.stat().st_size for path in folder.iterdir()) < 8e6


def test_over_seeds_each_method_is_scored_with_each_seed(open_lab, monkeypatch):
    """Prevents seeds that all score the first one's encoder, and methods in each other's columns."""
    monkeypatch.setattr("cselab.stages.scores.score", lambda lab, encode: Report(encode))
    lab = open_lab()
    build = {
        "a": lambda lab: lambda sentences: 10.0 + lab.settings.seed,
        "b": lambda lab: lambda sentences: 20.0 + lab.settings.seed,
    }
    table = stages.over_seeds(lab, build, range(3, 6))
    assert table.to_dict("index") == {s: {"a": 10.0 + s, "b": 20.0 + s} for s in (3, 4, 5)}
    rows = [json.loads(line) for line in (lab.run_dir / "results.jsonl").read_text().splitlines()]
    assert [(row["method"], row["seed"]) for row in rows] == [
        (m, s) for s in (4, 5) for m in "ab"
    ]  # 3 is the lab's own


def test_a_report_that_is_there_is_not_computed_again(open_lab, monkeypatch):
    """Prevents one seed's comparison from scoring everything twice, and another seed from getting the first one's score."""
    monkeypatch.setattr("cselab.stages.scores.score", lambda lab, encode: Report(encode))
    build = {"a": lambda lab: lambda sentences: float(lab.settings.seed)}
    table = stages.over_seeds(open_lab(), build, (3, 4), known={"a": Report(lambda sentences: 99.0)})
    assert table["a"].tolist() == [99.0, 4.0]


def test_a_method_of_ones_own_is_trained_and_trained_anew_when_it_is_changed(open_lab, capsys):
    """Prevents a reader who edits the loss in a notebook cell from getting the model of the loss before."""
    from cselab.methods import SimCSE, own_code, register

    def trained(scale):
        @register("mine")
        class Mine(SimCSE):
            own_terms = ("half",)
            default_terms = ("half",)
            factor = scale

            def half(self, vectors, context, ids):
                return self.factor * vectors["sentence"].square().mean()

        capsys.readouterr()
        encoder = stages.single(open_lab(), "mine").encoder
        return weights(encoder), "computed" in capsys.readouterr().out

    one, first = trained(0.5)
    again, second = trained(0.5)
    other, third = trained(-5.0)
    assert (first, second, third) == (True, False, True)
    assert torch.equal(one, again)
    assert not torch.equal(one, other)
    assert "factor = -5.0" in own_code("mine")
    assert own_code("simcse") == ""


def test_finished_trainings_open_with_their_scores(open_lab):
    """Prevents a comparer that offers stages without a training, or a training of another version of the library."""
    lab = open_lab()
    stages.tower(lab, "i")
    (name,) = stages.finished(lab)
    assert name.startswith("simcse-i, seed 3, dev 0.0 [")
    run = stages.finished(lab)[name]()
    assert [mark["step"] for mark in run.history] == [0, 2]
    assert run.phenomena.keys() == run.report.tasks["World"].by_subset.keys()
    stamp = next(lab.stages_dir.glob("simcse-i-*/stage.json"))
    stamp.write_text(stamp.read_text().replace('"source": "', '"source": "older-'))
    assert stages.finished(lab) == {}


class Report(StsReport):
    """Stands for a report whose average is what was "encoded"."""

    average = property(lambda self: self.value)

    def __init__(self, encode):
        super().__init__({})
        object.__setattr__(self, "value", encode([]))

    def to_rows(self):
        return [{"score": self.average}]


def test_a_moved_outputs_folder_trains_nothing_again(open_lab, tmp_path, capsys):
    """Prevents keys that hold where the towers lie, not what they are."""
    first = stages.joint(open_lab(outputs=tmp_path / "a"), "tncse")
    (tmp_path / "a").rename(tmp_path / "b")
    capsys.readouterr()
    again = stages.joint(open_lab(outputs=tmp_path / "b"), "tncse")
    assert "computed" not in capsys.readouterr().out
    assert torch.equal(weights(first.encoder), weights(again.encoder))


def test_a_backbone_whose_file_changed_is_another(open_lab, tmp_path, small_backbone):
    """Prevents yesterday's towers from a folder that holds other weights today."""
    folder = Path(shutil.copytree(small_backbone, tmp_path / "mine"))
    one = weights(stages.single(open_lab(backbone=str(folder)), "simcse").encoder)
    model = load_backbone(folder)
    with torch.no_grad():
        model.embeddings.word_embeddings.weight.mul_(2.0)
    model.save_pretrained(folder)
    other = weights(stages.single(open_lab(backbone=str(folder)), "simcse").encoder)
    assert not torch.equal(one, other)


def test_teachers_that_differ_in_anything_have_other_keys(make_bert, word_tokenizer):
    """Prevents a student from learning the vectors of a teacher with the same weights and another pooling, stream or sum."""

    def encoder(**options):
        return SentenceEncoder(make_bert(1), word_tokenizer, **options)

    def twin(**options):
        return TwinEncoder(make_bert(1), make_bert(2), tokenizer=word_tokenizer, **options)

    a, b, c = encoder(), SentenceEncoder(make_bert(2), word_tokenizer), encoder(pooling="mean")
    teachers = [
        a, c, encoder(prompt="summarize"), twin(), twin(cael=(2, 4)), twin(cael=(2, 4), cross_stream="fused"),
        Ensemble([a, b]), Ensemble([a, b], [1.0, 2.0]), Ensemble([Ensemble([a, b], [1.0, 2.0]), a]),
        Ensemble([Ensemble([a, b]), a]), Ensemble([a, b, a]),
    ]  # fmt: skip
    assert len({_fingerprint(teacher) for teacher in teachers}) == len(teachers)
    assert _fingerprint(encoder()) == _fingerprint(a)


def test_released_rows_are_of_their_own_repository(open_lab):
    """Prevents JTCSE with TNCSE's dropout, and TNCSE with JTCSE's rate."""
    lab = open_lab(released_rows="all", stage2_learning_rate=1e-4)
    rates = {name: stages.joint(lab, name).fit["history"][1]["learning_rate"] for name in ("tncse", "jtcse")}
    assert rates == pytest.approx({"tncse": 1e-4, "jtcse": 1.3e-4})
    dropout = {
        name: create(name, lab.settings, stages.tower_folders(lab)).encoder.tower_i.config.hidden_dropout_prob
        for name in ("tncse", "jtcse")
    }
    assert dropout == {"tncse": 0.00025, "jtcse": 0.1}


def test_one_tower_alone_has_the_schedule_of_its_own_paper():
    """Prevents SimCSE at the twin's rate, for two epochs."""
    paper = Settings.of("paper")
    assert (paper.single().learning_rate, paper.single().steps, paper.single().eval_every) == (3e-5, 15_625, 125)
    assert (paper.stage1("i").learning_rate, paper.stage1("i").steps) == (1.5e-5, 31_000)
    assert Settings.of("tiny").single() == Settings.of("tiny").stage1("i")


@pytest.mark.parametrize("name", ["jtcse", "tncse_single", "uc_d"])
def test_a_missing_pooler_is_said_before_any_training(open_lab, make_roberta, word_tokenizer, tmp_path, name):
    """Prevents two trained towers and then an error; the settings that it names help."""
    backbone = make_roberta(1)
    backbone.pooler = None
    SentenceEncoder(backbone, word_tokenizer).save_pretrained(tmp_path / "roberta")
    given = {"backbone": str(tmp_path / "roberta"), "triplets": 50, "world_pairs": 50}
    lab = open_lab(**given)
    with pytest.raises(ModelError, match=f"^{name}: .*roberta has no trained pooler.*pooler='fresh'.*modulus_on='cls'"):
        check(lab, name)
    check(open_lab(**given, pooler="fresh"), name)
    if name == "jtcse":
        check(open_lab(**given, modulus_on="cls"), name)
        assert stages.joint(open_lab(**given, pooler="fresh"), name).encoder.tower_i.pooler is not None
    else:
        assert not list(lab.stages_dir.iterdir())


def test_looking_ahead_changes_nothing(open_lab):
    """Prevents a check that leaves stages behind, moves the random state or makes a later training another."""
    before = weights(stages.joint(open_lab(), "jtcse").encoder)
    lab = open_lab()
    kept = sorted(lab.stages_dir.iterdir())
    torch.manual_seed(5)
    expected = torch.rand(1)
    torch.manual_seed(5)
    check(lab, "jtcse", "edfse_d", "simcse")
    assert torch.equal(torch.rand(1), expected)
    assert sorted(lab.stages_dir.iterdir()) == kept
    assert torch.equal(weights(stages.joint(lab, "jtcse").encoder), before)


def test_fewer_sentences_than_a_batch_are_found_by_the_check(open_lab):
    with pytest.raises(
        DataError, match="^simcse: 5 sentences are fewer than one batch of 8; give more, or a smaller batch"
    ):
        check(open_lab(sentences=5), "simcse")
    with pytest.raises(DataError, match="10 triplets are fewer than one batch of 32"):
        check(open_lab(triplets=10), "simcse_supervised")
    with pytest.raises(SettingsError, match="max_length=4096: the backbone reads at most"):
        check(open_lab(stage1_max_length=4096), "simcse")
