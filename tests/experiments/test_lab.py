"""The lab: seeds, settings of a notebook, rows that carry where they come from, runs of before."""

import gzip
import json
from types import SimpleNamespace

import numpy
import pytest
import torch
from quick import same_weights

from cselab.data.sts import load_sts
from cselab.errors import SettingsError
from cselab.experiments.measures import energy, geometry
from cselab.models import SentenceEncoder, TwinEncoder, load_backbone


def rows(lab) -> list[dict]:
    lines = (lab.cache.run_dir / "results.jsonl").read_text().splitlines()
    return [json.loads(line) for line in lines]


def test_rows_carry_seed_settings_and_environment(open_lab):
    lab = open_lab(caels=1, preset="released")
    lab.record([{"method": "m", "task": "t", "score": 1.5}])
    lab.record([{"method": "m", "task": "u", "score": 2.5}])
    first, second = rows(lab)
    assert (first["task"], second["task"]) == ("t", "u")
    assert {"torch", "transformers", "hardware", "commit", "source"} <= first.keys()
    assert (first["seed"], first["profile"], first["notebook"]) == (3, "quick", "test")
    settings = json.loads(first["settings"])
    assert (settings["caels"], settings["preset"]) == (1, "released")


def test_a_row_is_whole_after_one_that_was_cut_off(lab):
    """Prevents a row that is lost with the half row that it is glued to, and scores and methods
    that no reader takes for what they are."""
    lab.cache.run_dir.joinpath("results.jsonl").write_text('{"method": "m", "ta')
    lab.record([{"method": 3, "task": "t", "score": numpy.float32(1.5), "n": torch.tensor(2)}])
    lab.record([{"method": "m", "task": "t", "score": 2.5}])
    lines = (lab.cache.run_dir / "results.jsonl").read_text().splitlines()
    found = [json.loads(line) for line in lines[1:]]
    assert [(row["method"], row["score"]) for row in found] == [("3", 1.5), ("m", 2.5)]
    assert found[0]["n"] == 2


def test_the_seed_decides_torchs_draws(open_lab):
    draws = []
    for seed in (1, 1, 2):
        open_lab(seed=seed)
        draws.append(torch.rand(3))
    assert torch.equal(draws[0], draws[1])
    assert not torch.equal(draws[0], draws[2])


def test_a_setting_reaches_the_methods_that_have_it(open_lab):
    """Prevents a notebook's setting that one of its methods refuses, or that reaches none."""
    lab = open_lab(caels=1, **{"towers.temperature": 0.1})
    assert lab.config("jtcse").caels == 1
    assert [tower.temperature for tower in lab.config("sum").towers] == [0.1, 0.1]
    assert lab.config("simcse").temperature == 0.05
    assert lab.config("jtcse", caels=4).caels == 4
    with pytest.raises(SettingsError, match="unknown setting 'caels'"):
        lab.config("simcse", caels=4)


def test_none_is_as_the_profile_has_it(open_lab):
    assert open_lab(caels=None, data_dir=None, seed=None).config("jtcse").caels == 2


def test_other_settings_in_one_notebook_keep_the_rest(open_lab):
    lab = open_lab(caels=1, seed=7)
    other = lab.with_settings(caels=4, seed=8)
    assert (other.config("jtcse").caels, other.seed, other.profile) == (4, 8, "quick")
    assert other.cache is lab.cache
    assert (lab.config("jtcse").caels, lab.seed) == (1, 7)
    assert lab.with_settings(temperature=0.1).config("jtcse").caels == 1
    with pytest.raises(SettingsError, match="'temprature'; did you mean 'temperature'"):
        lab.with_settings(temprature=0.01)


@pytest.mark.parametrize("given", [{"device": "cuda"}, {"machine.outputs": "x"}])
def test_a_lab_keeps_its_machine(lab, given):
    """Prevents a timing of "cpu" that is the GPU's, and results that are not where they were asked
    for."""
    for change in (lab.with_settings, lambda **changes: lab.train("simcse", **changes)):
        with pytest.raises(SettingsError, match="is the whole lab's; give it to open_lab"):
            change(**given)


def test_other_text_in_one_notebook_is_read(lab):
    """Prevents a comparison of texts in which both are the first one."""
    few = lab.with_settings(sentences=20)
    assert (len(lab.data.text), len(few.data.text)) == (60, 20)
    one, other = lab.train("simcse"), lab.train("simcse", sentences=20)
    assert not same_weights(one, other)
    assert same_weights(few.train("simcse"), other)


def test_a_configuration_is_trained_on_the_labs_data(lab):
    """Prevents training on another text than the lab's, and the lab's hyperparameters in the place
    of the configuration's."""
    few = lab.with_settings(sentences=20, temperature=0.1)
    assert few.run(lab.config("simcse")).data == few.data.config
    assert few.config(lab.config("simcse")) == lab.config("simcse")
    assert same_weights(few.train(lab.config("simcse")), lab.train("simcse", sentences=20))


def test_a_method_before_its_training(lab):
    """Prevents figures of a twin at the start of stage 2 that show the backbone twice."""
    twin, towers = lab.create("jtcse", caels=4), lab.towers()
    start = twin.encoder.tower_i.state_dict()
    for name, value in towers[0].encoder.backbone.state_dict().items():
        assert torch.equal(start[name], value), name
    assert twin.encoder.cael == (1, 2, 3, 4)


# --------------------------------------------------------------------------------------- tests


def test_only_synthetic_tests_are_thinned(open_lab, tmp_path):
    """Prevents scores on a part of an official test, and a sample that loses a phenomenon."""
    (some,) = open_lab(synthetic_pairs=50).data.test_data
    whole = load_sts("Synthetic")
    assert len(some) == 50 < len(whole)
    assert set(some.subsets) == set(whole.subsets)
    (tmp_path / "sts").mkdir()
    pairs = [f"a man sits\ta man stands {i}\t{i % 6}" for i in range(1379)]
    with gzip.open(tmp_path / "sts" / "stsb-test.tsv.gz", "wt") as file:
        file.write("\n".join(["sentence1\tsentence2\tscore", *pairs]) + "\n")
    lab = open_lab(synthetic_pairs=50, data_dir=tmp_path, tasks="STSBenchmark")
    (official,) = lab.data.test_data
    assert len(official) == 1379


def report(number: float) -> SimpleNamespace:
    """Stands for an encoder, and for its report: the score is the number."""
    return SimpleNamespace(average=number, to_rows=lambda: [{"score": number}])


@pytest.fixture
def constant_scores(monkeypatch):
    monkeypatch.setattr("cselab.experiments.lab.score", lambda data, encoder: encoder)


@pytest.mark.usefixtures("constant_scores")
def test_each_method_is_scored_with_each_seed(lab):
    """Prevents seeds that all score the first one's encoder, and exchanged columns."""
    build = {"a": lambda lab: report(10.0 + lab.seed), "b": lambda lab: report(20.0 + lab.seed)}
    table = lab.over_seeds(build, range(3, 6))
    assert table.to_dict("index") == {s: {"a": 10.0 + s, "b": 20.0 + s} for s in (3, 4, 5)}
    recorded = [(row["method"], row["seed"]) for row in rows(lab)]
    assert recorded == [(m, s) for s in (4, 5) for m in "ab"]  # 3 is the lab's own


@pytest.mark.usefixtures("constant_scores")
def test_a_report_that_is_there_is_not_computed_again(lab):
    """Prevents one seed's comparison from scoring everything twice, and another seed from getting
    the first one's score."""
    build = {"a": lambda lab: report(float(lab.seed))}
    table = lab.over_seeds(build, (3, 4), known={"a": report(99.0)})
    assert table["a"].tolist() == [99.0, 4.0]


def test_checkpoints_by_folder_are_measured_like_methods(lab, small_backbone, tmp_path):
    """Prevents a public checkpoint that is read by another pooling, a twin whose second tower has
    no energy, two checkpoints under one name, and a name of the hub that is taken for a typing
    error of a backbone."""
    small = str(small_backbone)
    (found,) = lab.checkpoints([small]).values()
    untrained = lab.pretrained()
    assert geometry(lab.data, found) == pytest.approx(geometry(lab.data, untrained))
    assert energy(lab.data, found) == pytest.approx(energy(lab.data, untrained))
    one, two = load_backbone(small_backbone), load_backbone(small_backbone)
    with torch.no_grad():
        two.encoder.layer[0].attention.self.value.weight.mul_(3)
    energies = [energy(lab.data, SentenceEncoder(tower, found.tokenizer)) for tower in (one, two)]
    assert energies[0] != pytest.approx(energies[1])
    folders = [str(tmp_path / part / "twin") for part in "ab"]
    for folder in folders:
        TwinEncoder(one, two, tokenizer=found.tokenizer).save_pretrained(folder)
    twins = lab.checkpoints(f"{folders[0]}, {folders[1]},tiny-bert", pooling="mean")
    assert list(twins) == [*folders, "tiny-bert"]
    assert energy(lab.data, twins[folders[0]]) == pytest.approx(sum(energies) / 2)
    assert twins["tiny-bert"].pooling == "mean"
    assert energy(lab.data, lab.train("sif")) is None
    with pytest.raises(SettingsError, match=r"^checkpoints: no 'tiny-brt' here; .*'tiny-bert'"):
        lab.checkpoints("tiny-brt")
    with pytest.raises(SettingsError, match=r"^checkpoints: no 'who/what' here; .*hub=True"):
        lab.checkpoints(["who/what"])
