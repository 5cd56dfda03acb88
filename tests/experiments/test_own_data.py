"""A text, a backbone and evaluation pairs of one's own, given by path."""

import shutil
from math import isnan
from pathlib import Path

import pytest
from quick import same_weights

from cselab import cli
from cselab.data import load_sts
from cselab.errors import DataError
from cselab.experiments.measures import dev_score, geometry

TEXT = [
    f"the {colour} {animal} is {doing} in the park ."
    for colour in ("big", "small", "red")
    for animal in ("dog", "cat", "man")
    for doing in ("sleeping", "running", "eating")
]


@pytest.fixture
def corpus(tmp_path) -> str:
    path = tmp_path / "my-text.txt"
    path.write_text("\n".join(TEXT))
    return str(path)


@pytest.fixture
def pairs(tmp_path):
    """`pairs(name)`: a file of 12 pairs, of others if "dev" is in its name."""

    def pairs(name, header="sentence1\tsentence2\tscore", top=5):
        text = TEXT if "dev" in name else TEXT[12:]
        lines = [f"{text[i]}\t{text[(2 * i + 1) % 12]}\t{i % 6 / 5 * top}" for i in range(12)]
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text("\n".join([header, *lines]) + "\n")
        return str(path)

    return pairs


def test_a_text_by_path_is_what_is_trained_on(open_lab, corpus):
    """Prevents a training on the synthetic text under the name of one's own."""
    lab = open_lab(corpus=corpus)
    assert lab.data.sentences(100) == TEXT
    assert not same_weights(lab.train("simcse"), open_lab().train("simcse"))


def test_a_copy_of_a_test_does_not_pick_checkpoints(open_lab, pairs, tmp_path):
    """Prevents a selection on the test by its copy, also with other ratings, in part, as the
    default dev split, and in a training that nobody checked."""
    test = pairs("test.tsv")
    rows = [line.split("\t") for line in Path(test).read_text().splitlines()[1:11]]
    copy = tmp_path / "copy.csv"
    lines = [f"{b},{a},{float(score) / 5}" for a, b, score in rows]
    copy.write_text("\n".join(["sentence1,sentence2,score", *lines]))
    lab = open_lab(tasks=test, dev_task=copy)
    message = r"dev_task: .*copy\.csv is also a test \(9 of its 9 pairs are in .*test\.tsv\)"
    for step in (lambda: lab.check("sif"), lambda: lab.evaluate({"sif": lab.pretrained()})):
        with pytest.raises(DataError, match=message):
            step()
    dev = load_sts("Synthetic", "dev")
    lines = zip(dev.sentences1, dev.sentences2, map(str, dev.scores), strict=True)
    header = "sentence1\tsentence2\tscore"
    Path(test).write_text("\n".join([header, *map("\t".join, lines)]))
    with pytest.raises(DataError, match=r"dev_task: Synthetic is also a test \(12 of its 12 pairs"):
        open_lab(tasks=test).check("simcse")


def test_pairs_rated_from_0_to_1_are_measured_as_those_from_0_to_5(open_lab, pairs, capsys):
    """Prevents a training whose test score is lost because no rating is above 4; where none is
    above 4 of 5, the check says it."""
    labs = [open_lab(dev_task=pairs(f"dev-{top}.tsv", top=top)) for top in (5, 1, 4)]
    five, one, four = (geometry(lab.data, lab.pretrained()) for lab in labs)
    assert five == one
    assert four[0] == five[0]
    assert isnan(four[1])
    capsys.readouterr()
    for lab, said in zip(labs, (0, 0, 1), strict=True):
        lab.check("untrained")
        assert capsys.readouterr().out.count("alignment is left out: no pair of dev dev-4") == said


def test_files_are_given_as_paths_and_with_commas_in_their_names(open_lab, pairs, corpus, tmp_path):
    """Prevents "a valid tuple" for a `Path`, and two files that are not there for one that is."""
    comma = Path(pairs("one,two.tsv"))
    shutil.copy(corpus, tmp_path / "a,b.txt")
    for tasks, text in ((comma, tmp_path / "a,b.txt"), ([str(comma)], str(tmp_path / "a,b.txt"))):
        lab = open_lab(corpus=text, tasks=tasks, dev_task=Path(pairs("dev.tsv")))
        assert lab.data.sentences(100) == TEXT
        assert (lab.data.test_tasks, lab.data.dev_name) == (("one,two",), "dev dev")


def test_pairs_by_path_are_the_tests_and_the_dev_split(open_lab, pairs, corpus):
    """Prevents scores of synthetic pairs in a table of one's own, and checkpoints picked by
    them."""
    lab = open_lab(
        corpus=corpus, tasks=f"{pairs('one.tsv')},{pairs('two.tsv')}", dev_task=pairs("dev.tsv")
    )
    lab.check("jtcse")
    trained = lab.train("jtcse")
    report = lab.evaluate({"JTCSE": trained})["JTCSE"]
    assert list(report.scores) == ["one", "two"]
    assert trained.fit["best_dev"] == pytest.approx(dev_score(lab.data, trained))
    assert lab.data.dev_pairs.sentences1[0] == TEXT[0]


def test_two_tests_of_one_name_are_refused(open_lab, pairs):
    """Prevents one file's score that stands for two, and a store that two rows do not fit in."""
    both = f"{pairs('a/pairs.tsv')},{pairs('b/pairs.tsv')}"
    with pytest.raises(DataError, match=r"tasks: two tests are called 'pairs'; rename a file"):
        open_lab(tasks=both).check("simcse")


def test_a_backbone_by_path_is_where_all_towers_start(open_lab, small_backbone, tmp_path):
    """Prevents a student or a second tower from another backbone than was asked for."""
    folder = str(shutil.copytree(small_backbone, tmp_path / "my-bert"))
    lab = open_lab(backbone=folder)
    backbones = [value for place, value, _ in lab.run("uc_d").leaves() if place[-1] == "backbone"]
    assert backbones == [folder] * 4
    assert same_weights(lab.train("sum"), open_lab().train("sum"))


def test_the_command_line_takes_all_three(
    open_lab, corpus, pairs, small_backbone, tmp_path, monkeypatch, capsys
):
    """Prevents files that work in a notebook and not in `cselab train`, relative ones above all."""
    monkeypatch.chdir(tmp_path)
    shutil.copytree(small_backbone, tmp_path / "my-bert")
    pairs("test.tsv"), pairs("dev.tsv")
    given = {
        "profile": "quick",
        "corpus": "my-text.txt",
        "backbone": "./my-bert",
        "tasks": "test.tsv",
        "dev_task": "dev.tsv",
        "measures": "sts",
        "terms": '["nce", "icnce"]',  # a list is one value here
    }
    settings = [part for name, value in given.items() for part in ("-p", f"{name}={value}")]
    command = ["train", "jtcse", *settings, "--outputs", "outputs"]
    assert cli.app(command, standalone_mode=False) in (None, 0)
    found = [line.split()[:2] for line in capsys.readouterr().out.splitlines()[-3:]]
    assert found == [["test", "test"], ["test", "average"], ["dev", "dev"]]
