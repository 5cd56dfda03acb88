"""Grids: what they become, and bad ones in one line before anything starts."""

from functools import partial
from pathlib import Path

import pytest

from cselab.errors import CselabError, SettingsError
from cselab.experiments.grid import expand, parse_seeds, read_grid
from cselab.workbook.headless.runner import find_parameters

ROOT = Path(__file__).resolve().parents[2]
FIND = partial(find_parameters, ROOT / "notebooks")


def runs(grid: dict) -> list[tuple[str, int]]:
    return [(run.label, run.seed) for run in expand(grid, find_notebook=FIND)]


def test_a_block_is_the_product_of_its_axes():
    """Prevents an axis that is taken for one value, and a shared setting that reaches some blocks
    only."""
    twin = {
        "methods": "jtcse",
        "caels": [1, 6],
        "terms": [["nce", "icnce"], ["nce"]],
        "towers": {"temperature": 0.2},
        "label": "J {caels} {terms} {towers.temperature}",
    }
    simple = {"methods": ["simcse", "sum"]}
    blocks = [simple, twin, {"notebooks": ["03"], "seeds": [7]}]
    found = expand({"seeds": "1-2", "sentences": 300, "runs": blocks}, find_notebook=FIND)
    assert [(run.label, run.seed) for run in found] == [
        ("simcse", 1),
        ("simcse", 2),
        ("sum", 1),
        ("sum", 2),
        *(
            (f"J {caels} {terms} 0.2", seed)
            for caels in (1, 6)
            for terms in ("nce,icnce", "nce")
            for seed in (1, 2)
        ),
        ("03_jtcse_training", 7),
    ]
    assert {run.config.data.sentences for run in found} == {300}
    assert {run.config.profile for run in found} == {"tiny"}
    first = found[4].config.method
    assert list(first.terms) == ["nce", "icnce"]
    assert [tower.temperature for tower in first.towers] == [0.2, 0.2]
    assert first.temperature == 0.1
    assert found[-1].notebook.stem == "03_jtcse_training"


def test_a_setting_at_the_top_is_for_the_methods_that_have_it():
    """Prevents one grid of twins and single towers that cannot name the twins' setting at its top,
    and a block's mistake that passes as another method's setting."""
    simcse, jtcse = expand({"methods": ["simcse", "jtcse"], "caels": 2})
    assert jtcse.config.method.caels == 2
    assert not hasattr(simcse.config.method, "caels")
    with pytest.raises(SettingsError, match="unknown setting 'caels'"):
        expand({"runs": [{"methods": ["simcse"], "caels": 2}]})


def test_an_axis_is_not_in_the_label_of_a_method_without_it():
    """Prevents SimCSE from being called "simcse, caels=2" beside twins with 1 and 2 CAELs."""
    grid = {"methods": ["simcse", "jtcse"], "caels": [1, 2], "seed": 3}
    assert runs(grid) == [("simcse", 3), ("jtcse, caels=1", 3), ("jtcse, caels=2", 3)]


@pytest.mark.parametrize("given", [["sts", "energy"], "sts, energy", "sts,energy"])
def test_measures_of_a_file_and_of_a_command_line(given):
    """Prevents `-p measures=dev` from being read letter by letter."""
    (run,) = expand({"methods": ["simcse"], "measures": given})
    assert run.measures == ("sts", "energy")


def test_seeds():
    assert parse_seeds("1-3,8") == [1, 2, 3, 8]
    assert parse_seeds([4, 5]) == [4, 5]
    assert parse_seeds(6) == [6]
    for wrong in ("x", "1-", "-3", [1.5]):
        with pytest.raises(SettingsError, match="seeds: expected numbers"):
            parse_seeds(wrong)


@pytest.mark.parametrize(
    ("grid", "message"),
    [
        ({"methods": ["simcse"], "sed": 1}, "unknown key 'sed'; did you mean 'seed'"),
        ({"methods": []}, "the grid has no run"),
        ({"methods": ["simcse"], "caels": []}, "the grid has no run"),
        ({"methods": ["simcse"], "temperature": [0.1, -1]}, "temperature"),
        (
            {"methods": ["simcse"], "measures": ["stss"]},
            "unknown measure 'stss'; did you mean 'sts'",
        ),
        ({"methods": ["simcse"], "label": "{colour}"}, "label '{colour}'"),
        (
            {"methods": ["jtcse"], "label": "J", "caels": [1, 2]},
            "two runs are called 'J' and differ",
        ),
        (
            {"runs": [{"methods": "simcse", "round_trips.pivot": "fr", "pivot": ["fr", "de"]}]},
            "'simcse, pivot=fr' and 'simcse, pivot=de' are the same run: they differ in no setting",
        ),
        (
            {"runs": [{"methods": "simcse", "label": label} for label in ("A", "B")]},
            "'A' and 'B' are the same run",
        ),
        (
            {"methods": ["simcse"], "label": "{method} {caels}", "caels": [1, 2]},
            "'simcse 1' and 'simcse 2' are the same run",
        ),
        ({"methods": ["simcse"], "profile": ["tiny", "small"]}, "profile takes one text"),
        (
            {"notebooks": ["03"], "dev_pears": 20},
            "unknown key 'dev_pears'; did you mean 'dev_pairs'",
        ),
        ({"notebooks": ["99"]}, "no notebook '99'"),
        ({"runs": {"methods": ["simcse"]}}, "expected blocks that begin with"),
        ({"methods": ["simcse"], "profile": "tinny"}, "unknown profile 'tinny'"),
        ({"methods": ["simcse"], "outputs": "x"}, "give --outputs"),
        ({"runs": [{"methods": "simcse", "machine": {"outputs": "x"}}]}, "give --outputs"),
    ],
)
def test_a_bad_grid_is_one_line(grid, message):
    with pytest.raises(CselabError, match=message) as caught:
        expand(grid, find_notebook=FIND)
    assert len(str(caught.value).splitlines()) == 1


def test_a_file_whose_methods_nobody_names_is_said(tmp_path, capsys, own_registry):
    """Prevents a comparison without the method that it is about."""
    own = tmp_path / "my_method.py"
    own.write_text(
        "from cselab.methods import register\nfrom cselab.methods.simcse import SimCSE\n"
        '@register("mine")\nclass Mine(SimCSE): pass\n'
    )
    expand({"methods": ["sif"]}, modules=[own])
    assert capsys.readouterr().out == "my_method.py: no run uses mine; name it among the methods\n"
    expand({"methods": ["sum"], "towers": ["mine", "simcse"]}, modules=[own])
    assert not capsys.readouterr().out


def test_a_file(tmp_path):
    (tmp_path / "g.toml").write_text('methods = ["sif"]\nseeds = "1-2"\n')
    assert len(expand(read_grid(tmp_path / "g.toml"))) == 2
