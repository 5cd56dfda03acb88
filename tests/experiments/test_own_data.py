"""A text, a backbone and evaluation pairs of one's own, given by path."""

import shutil

import pytest
from quick import same_weights

from cselab import cli
from cselab.errors import DataError

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
    """`pairs(name)`: a file of 12 pairs."""

    def pairs(name, header="sentence1\tsentence2\tscore"):
        lines = [f"{TEXT[i]}\t{TEXT[(2 * i + 1) % 12]}\t{i % 6}" for i in range(12)]
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text("\n".join([header, *lines]) + "\n")
        return str(path)

    return pairs


def test_a_text_by_path_is_what_is_trained_on(open_lab, corpus):
    """Prevents a training on the synthetic text under the name of one's own."""
    lab = open_lab(corpus=corpus)
    assert lab.sentences(100) == TEXT
    assert not same_weights(lab.train("simcse"), open_lab().train("simcse"))


def test_a_test_does_not_pick_checkpoints(open_lab, pairs):
    """Prevents a selection on the test by one's own file, in a report that says there was none."""
    lab = open_lab(tasks=pairs("mine.tsv"), dev_task=pairs("mine.tsv"))
    with pytest.raises(DataError, match=r"dev_task: .*mine\.tsv is also a test.*give other pairs"):
        lab.check("simcse")


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
    assert trained.fit["best_dev"] == pytest.approx(lab.dev_score(trained))
    assert lab.dev_pairs.sentences1[0] == TEXT[0]


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


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("pairs.tsv", "a\tb\tscore\n", "pairs.tsv: no column 'sentence1'"),
        ("pairs.tsv", "sentence1\tsentence2\tscore\na\tb\t9\n", "line 2: score '9'"),
        ("pairs.tsv", "sentence1\tsentence2\tscore\na\tb\t1\n", "has 1 pairs; a correlation needs"),
    ],
)
def test_bad_pairs_are_found_before_any_training(open_lab, tmp_path, name, text, message):
    (tmp_path / name).write_text(text)
    for setting in ("tasks", "dev_task"):
        lab = open_lab(**{setting: str(tmp_path / name)})
        with pytest.raises(DataError, match=message):
            lab.check("simcse")
        assert not list(lab.workspace.steps_dir.iterdir())


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
