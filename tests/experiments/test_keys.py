"""Keys: equal for the same training wherever its files lie, other for anything that changes it."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import torch
from quick import same_weights

from cselab.experiments.keys import node_key
from cselab.models import load_backbone


def key(lab, method: str, **changes) -> str:
    return node_key(lab.cache, lab.config(method, **changes))


def key_of_tower(lab, method: str, **changes) -> str:
    return node_key(lab.cache, lab.config(method, **changes).towers[0])


# ------------------------------------------------------------------------- what a run depends on


def test_towers_of_runs_that_differ_in_stage_two_have_equal_keys(lab):
    """Prevents a sweep over stage 2 that trains its towers again for each point."""
    assert key_of_tower(lab, "sum") == key_of_tower(lab, "tncse") == key_of_tower(lab, "jtcse")
    changes = ({"caels": 1}, {"cross_stream": "fused"}, {"temperature": 0.1}, {"steps": 9})
    for change in (*changes, {"dropout": 0.3}, {"terms": ["nce"]}, {"preset": "released"}):
        assert key_of_tower(lab, "jtcse", **change) == key_of_tower(lab, "jtcse"), change
        assert key(lab, "jtcse", **change) != key(lab, "jtcse"), change


def test_another_tower_is_another_twin_and_another_student(lab):
    """Prevents a twin that is found although its towers are other ones."""
    changes = [{"towers.temperature": 0.1}, {"towers.0.steps": 9}, {"towers.pivot": "nl"}]
    for change in (*changes, {"towers.method": "esimcse"}, {"mode": "append"}, {"seed": 4}):
        for name in ("tncse", "tncse_d", "uc"):
            assert key(lab, name, **change) != key(lab, name), change
        assert key_of_tower(lab, "tncse", **change) != key_of_tower(lab, "tncse"), change


def test_the_towers_of_one_run_have_their_own_keys(lab):
    towers = lab.config("jtcse").towers
    assert len({node_key(lab.cache, tower) for tower in towers}) == 2


def test_teachers_that_differ_in_anything_have_other_keys(lab):
    """Prevents a student from learning the vectors of a teacher with the same weights and another
    pooling, stream, sum or weight."""
    teachers = [
        {"teacher": "untrained"},
        {"teacher": "untrained", "teacher.pooling": "mean"},
        {"teacher": "whitened"},
        {"teacher": "tncse"},
        {"teacher": "jtcse"},
        {"teacher": "jtcse", "teacher.caels": 1},
        {"teacher": "jtcse", "teacher.cross_stream": "fused"},
        {"teacher": "sum"},
        {"teacher": "edfse"},
        {"teacher": "edfse", "teacher.pivots": ["fr", "ru"]},
        {"teacher": "uc"},
        {"teacher": "uc", "teacher.weight": 0.5},
        {"teacher": "uc", "teacher.outsider": "simcse"},
    ]
    found = {key(lab, "distilled", **changes) for changes in teachers}
    assert len(found) == len(teachers)


def test_a_key_has_nothing_of_the_machine_or_the_tests(open_lab, tmp_path):
    """Prevents a training that is done again for another folder, or for one more test."""
    plain = key(open_lab(), "jtcse")
    assert key(open_lab(outputs=tmp_path / "elsewhere"), "jtcse") == plain
    assert key(open_lab(tasks="Synthetic", synthetic_pairs=20), "jtcse") == plain
    assert key(open_lab(dev_pairs=20), "jtcse") != plain  # which picks the checkpoint


def test_another_process_finds_the_same_key(lab, small_backbone):
    """Prevents a training that no other process finds: a set has another order in each."""
    program = (
        "import sys; sys.path.insert(0, 'tests')\n"
        "from quick import QUICK; import cselab; from cselab.experiments import PROFILES\n"
        "from cselab.experiments.keys import node_key\n"
        "PROFILES['quick'] = QUICK\n"
        "lab = cselab.open_lab('test', profile='quick', device='cpu', seed=3,\n"
        f"    backbone={small_backbone!r}, outputs={str(lab.cache.run_dir)!r})\n"
        "print(node_key(lab.cache, lab.config('uc_d')))\n"
    )
    environment = {**os.environ, "PYTHONHASHSEED": "7"}
    root = Path(__file__).resolve().parents[2]
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, env=environment, cwd=root, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split()[-1] == key(lab, "uc_d")


# ------------------------------------------------------------------------------ content, not paths


def test_a_moved_outputs_folder_trains_nothing_again(open_lab, tmp_path, capsys):
    """Prevents keys that hold where the towers lie, not what they are."""
    first = open_lab(outputs=tmp_path / "a").train("tncse")
    (tmp_path / "a").rename(tmp_path / "b")
    capsys.readouterr()
    again = open_lab(outputs=tmp_path / "b").train("tncse")
    assert "computed" not in capsys.readouterr().out
    assert same_weights(first, again)


def test_a_copied_backbone_is_the_same_and_an_edited_one_another(
    open_lab, tmp_path, small_backbone
):
    """Prevents yesterday's towers from a folder that holds other weights today."""
    plain = key(open_lab(), "jtcse_d")
    folder = Path(shutil.copytree(small_backbone, tmp_path / "mine"))
    assert key(open_lab(backbone=str(folder)), "jtcse_d") == plain
    model = load_backbone(folder)
    with torch.no_grad():
        model.embeddings.word_embeddings.weight.mul_(2.0)
    model.save_pretrained(folder)
    assert key(open_lab(backbone=str(folder)), "jtcse_d") != plain


def test_a_moved_text_is_the_same_and_an_edited_one_another(open_lab, tmp_path):
    """Prevents a training that is done again because a file was moved, and one that is found
    although the file was changed."""
    lines = [f"a man sits on chair number {i} .\n" for i in range(20)]
    (tmp_path / "a.txt").write_text("".join(lines))
    first = key(open_lab(corpus=str(tmp_path / "a.txt")), "simcse")
    (tmp_path / "other").mkdir()
    moved = (tmp_path / "a.txt").rename(tmp_path / "other" / "b.txt")
    assert key(open_lab(corpus=str(moved)), "simcse") == first
    moved.write_text("".join([*lines, "a dog runs .\n"]))
    assert key(open_lab(corpus=str(moved)), "simcse") != first


def test_moved_round_trips_are_the_same_and_edited_ones_others(open_lab, tmp_path):
    text = open_lab().data.sentences()

    def written(name, ending):
        path = tmp_path / name
        lines = [f"{line}\t{line} {ending}\n" for line in text]
        path.write_text("".join(["sentence\tround_trip\n", *lines]))
        return key(open_lab(translator=str(path)), "simcse")

    assert written("a.tsv", "again") == written("b.tsv", "again")
    assert written("c.tsv", "anew") != written("a.tsv", "again")
