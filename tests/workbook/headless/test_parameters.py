"""Strict parameters: what papermill lets through, and what it misreads."""

import json
from pathlib import Path

import nbformat
import pytest

from cselab.errors import CselabError, SettingsError
from cselab.experiments import configure
from cselab.workbook.headless.parameters import assign, read_parameters

NOTEBOOKS = sorted((Path(__file__).parents[3] / "notebooks").glob("[0-9]*.ipynb"))

CELL = '''
"""A docstring is no parameter."""
from typing import Literal
profile: str = "tiny"
seed: int = 42
rate: float = 1e-3
flag: bool = False
formula: str = "a=b, c=d"
mode: Literal["append", "pair"] = "append"
data_dir: str | None = None
steps: int | None = None
plain = 3
'''


def notebook(folder: Path, source: str, name: str = "01_a.ipynb", tag: str = "parameters") -> Path:
    cell = nbformat.v4.new_code_cell(source, metadata={"tags": [tag]})
    nbformat.write(
        nbformat.v4.new_notebook(cells=[nbformat.v4.new_markdown_cell("# A"), cell]), folder / name
    )
    return folder / name


@pytest.fixture
def path(tmp_path):
    return notebook(tmp_path, CELL)


def test_defaults_with_equals_signs_and_literals_are_read(path):
    """papermill #864 and #906: both are "unknown" to it."""
    found = read_parameters(path)
    assert " ".join(found) == "profile seed rate flag formula mode data_dir steps plain"
    assert found["formula"].default == "a=b, c=d"
    assert found["mode"].expected == "'append' or 'pair'"
    assert found["steps"].expected == "int or None"


def test_values_are_converted_by_annotation(path, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    texts = dict(seed="7", rate="2", flag="true", formula="x=y", mode="pair", steps="5", plain="4")
    values = assign({**texts, "data_dir": "here"}, [path])[path]
    assert values == {
        **dict(seed=7, rate=2.0, flag=True, formula="x=y", mode="pair", steps=5, plain=4),
        "data_dir": str(tmp_path / "here"),
    }
    assert isinstance(values["rate"], float)
    assert assign({"steps": "None"}, [path])[path] == {"steps": None}
    other = 'a: Optional[int] = None\nb: "Mine" = 1\nc: typing.Literal[1, "x"] | None = 1'
    assert [
        p.expected for p in read_parameters(notebook(tmp_path, other, "02.ipynb")).values()
    ] == [
        "int or None",
        "anything",
        "1 or 'x' or None",
    ]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1,2,3", [1, 2, 3]),
        ("[1, 2]", [1, 2]),
        ("5", [5]),
        ("", []),
        ("none, nce+ictm", ["none", "nce+ictm"]),
    ],
)
def test_a_list_is_a_list_however_it_is_typed(text, value, tmp_path):
    """Prevents one number that a cell cannot iterate over, and names that stay one text."""
    path = notebook(tmp_path, "counts: list = []\nothers: Optional[list] = None")
    assert assign({"counts": text}, [path])[path] == {"counts": value}
    assert assign({"others": text}, [path])[path] == {"others": value}
    assert assign({"others": "none"}, [path])[path] == {"others": None}


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("seeds", "1", "unknown parameter 'seeds'; did you mean 'seed'"),
        ("seed", "abc", "parameter 'seed' takes int, got 'abc'"),
        ("seed", "1.5", "parameter 'seed' takes int, got '1.5'"),
        ("flag", "yes", "parameter 'flag' takes bool, got 'yes'"),
        ("rate", "fast", "parameter 'rate' takes float, got 'fast'"),
        ("mode", "add", "parameter 'mode' takes 'append' or 'pair', got 'add'"),
        ("steps", "many", "parameter 'steps' takes int or None, got 'many'"),
    ],
)
def test_unknown_and_mistyped_are_one_line(path, name, text, message):
    with pytest.raises(SettingsError, match=message) as caught:
        assign({name: text}, [path])
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("cells", "texts", "values", "missing"),
    [
        (
            ["seed: int = 1", "seed: int = 1\ncaels: int = 3"],
            {"caels": "2", "seed": "5"},
            [{"seed": 5}, {"caels": 2, "seed": 5}],
            {"caels": 0},
        ),
        (
            ["seeds: int = 3\nsettings: dict = {}", "settings: dict = {}"],
            {"seeds": "5", "caels": "2"},
            [{"seeds": 5, "settings": {"caels": 2}}, {"settings": {"caels": 2}}],
            {"seeds": 1},
        ),
        (
            ["seed: int = 42\nsettings: dict = {}", "seed: int = 42"],
            {"seed": "3", "hub": "True", "caels": "2"},
            [{"seed": 3, "settings": {"hub": True, "caels": 2}}, {"seed": 3}],
            {"hub": 1, "caels": 1},
        ),
    ],
)
def test_a_parameter_goes_to_the_notebooks_that_take_it(
    cells, texts, values, missing, tmp_path, capsys
):
    """Prevents `-p hub=True` that reaches one of two notebooks and says nothing, and `-p seeds=5`
    that fails in the kernel of a notebook without it."""
    paths = [notebook(tmp_path, cell, f"0{i}_a.ipynb") for i, cell in enumerate(cells)]
    assert assign(texts, paths) == dict(zip(paths, values, strict=True))
    lines = [f"{n}: not taken by 0{i}_a, which has no such parameter" for n, i in missing.items()]
    assert capsys.readouterr().out.splitlines() == lines


def test_paths_are_those_of_the_commands_folder(tmp_path, monkeypatch):
    """Prevents a leaderboard that lands beside the notebooks, a list of files that the kernel looks
    for there, and None or an empty text that becomes a folder."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "my.tsv").touch()
    paths = {"leaderboard": ("b.csv", str(tmp_path / "b.csv")), "data_dir": ("None", None)}
    paths["tasks"] = ('["my.tsv", "STS12"]', json.dumps([str(tmp_path / "my.tsv"), "STS12"]))
    path = notebook(tmp_path, "\n".join(f"{name}: str | None = 'x'" for name in (*paths, "corpus")))
    for name, (text, value) in {**paths, "corpus": ("", "")}.items():
        assert assign({name: text}, [path]) == {path: {name: value}}


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (None, "has no cell tagged 'parameters'"),
        (
            "seed = compute()",
            "'seed = compute\\(\\)' is not a plain literal; move it to a later cell",
        ),
        ("seed: int", "is not a plain literal"),
        ("seed, steps = (1, 2)", "is not a plain literal"),
        ("%matplotlib inline\na = 1", "parameters cell: not plain Python .*; move what"),
        ("a = 1\0", "parameters cell: not plain Python"),
        ("{", "01_a.ipynb is not a notebook of format 4"),
        ('{"nbformat": 4, "cells": [{"metadata": {}}]}', "a.ipynb is not a notebook of format 4"),
    ],
)
def test_what_is_no_parameters_cell_is_one_line(source, message, tmp_path):
    """Prevents a traceback of nbformat's or of Python's own parser."""
    path = notebook(tmp_path, source or "a = 1", tag="parameters" if source else "other")
    if source and source.startswith("{"):
        path.write_text(source)
    with pytest.raises(CselabError, match=message):
        read_parameters(path)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"hubb": "True"}, "unknown parameter 'hubb'; did you mean 'hub'"),
        ({"caels": "many"}, "caels: expected a whole number, got 'many'"),
        ({"settings": "{}"}, "unknown parameter 'settings'"),
        ({"profile": "papr"}, "unknown profile 'papr'; did you mean 'paper'"),
    ],
)
def test_settings_are_checked_before_a_kernel_starts(given, message, tmp_path):
    takes = notebook(tmp_path, 'profile: str = "tiny"\nsettings: dict = {}')
    with pytest.raises(SettingsError, match=message):
        assign(given, [takes])


@pytest.mark.parametrize(
    ("line", "text", "value"),
    [
        ("head: int = 5", "10", 10),
        ("steps: int = 1", "0", 0),
        ("leaderboard: int = 3", "4", 4),
        ("seed: str = 'x'", "abc", "abc"),
        ("profile: str = 'user'", "admin", "admin"),
        ("preset: int = 1", "2", 2),
    ],
)
def test_a_notebooks_own_parameter_is_no_setting(line, text, value, tmp_path):
    """Prevents `-p head=10` of somebody's own notebook from being checked as a setting of a method
    that has the same name."""
    path = notebook(tmp_path, line)
    name = line.partition(":")[0]
    assert assign({name: text}, [path]) == {path: {name: value}}
    with_settings = notebook(tmp_path, f"{line}\nsettings: dict = {{}}", "02_b.ipynb")
    if name not in ("profile", "seed", "preset"):
        assert assign({name: text}, [with_settings]) == {with_settings: {name: value}}


def test_a_parameter_that_the_lab_takes_is_checked_before_a_kernel_starts(tmp_path):
    """Prevents a bad setting that is only found when the notebook opens its lab."""
    path = notebook(tmp_path, "caels: int | None = None")
    nb = nbformat.read(path, as_version=4)
    nb.cells.append(nbformat.v4.new_code_cell("lab = open_lab('x', caels=caels)"))
    nbformat.write(nb, path)
    with pytest.raises(SettingsError, match="caels: expected 0 or more"):
        assign({"caels": "-1"}, [path])


def test_every_notebook_takes_every_setting(capsys):
    """Prevents a setting that one notebook knows and another refuses, drops or cannot read, as it
    once dropped `head=none`."""
    texts = {
        place[-1]: value if isinstance(value, str) else json.dumps(value, default=str)
        for method in ("bellm", "imsimcse", "jtcse")  # each name is matched with all methods
        for place, value, _ in configure(method).leaves()
        if value is not None and place[-1] not in ("profile", "method", "weight")
    }
    assert {"head", "caels", "corpus", "lora_rank", "outputs"} <= texts.keys()
    values = assign(texts, NOTEBOOKS)
    assert len(values) >= 13
    for given in values.values():
        assert {*given, *given.get("settings", {})} - {"settings"} == set(texts)
    assert not capsys.readouterr().out
