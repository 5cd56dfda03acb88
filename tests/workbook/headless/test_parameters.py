"""Strict parameters: what papermill lets through, and what it misreads."""

import json
from pathlib import Path

import nbformat
import pytest

from cselab.errors import CselabError, SettingsError
from cselab.experiments import configure
from cselab.methods import method_names
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
    assert list(found) == [
        "profile",
        "seed",
        "rate",
        "flag",
        "formula",
        "mode",
        "data_dir",
        "steps",
        "plain",
    ]
    assert found["formula"].default == "a=b, c=d"
    assert found["mode"].expected == "'append' or 'pair'"
    assert found["steps"].expected == "int or None"


def test_values_are_converted_by_annotation(path, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    given = {
        "seed": "7",
        "rate": "2",
        "flag": "true",
        "formula": "x=y",
        "mode": "pair",
        "data_dir": "here",
        "steps": "5",
        "plain": "4",
    }
    values = assign(given, [path])[path]
    assert values == {
        "seed": 7,
        "rate": 2.0,
        "flag": True,
        "formula": "x=y",
        "mode": "pair",
        "data_dir": str(tmp_path / "here"),
        "steps": 5,
        "plain": 4,
    }
    assert isinstance(values["rate"], float)
    assert assign({"steps": "None"}, [path])[path] == {"steps": None}


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


def test_a_parameter_goes_to_the_notebooks_that_have_it(path, tmp_path):
    other = notebook(tmp_path, "seed: int = 1\ncaels: int = 3", "02_b.ipynb")
    values = assign({"caels": "2", "seed": "5"}, [path, other])
    assert values == {path: {"seed": 5}, other: {"caels": 2, "seed": 5}}


def test_a_parameter_of_one_notebook_is_no_setting_of_the_others(tmp_path, capsys):
    """Prevents `cselab run 02 11 -p seeds=5` from failing in the kernel of 02, which has no such
    setting either."""
    takes = notebook(tmp_path, "seeds: int = 3\nsettings: dict = {}", "01_a.ipynb")
    other = notebook(tmp_path, "settings: dict = {}", "02_b.ipynb")
    values = assign({"seeds": "5", "caels": "2"}, [takes, other])
    assert values == {
        takes: {"seeds": 5, "settings": {"caels": 2}},
        other: {"settings": {"caels": 2}},
    }
    assert capsys.readouterr().out == "seeds: not taken by 02_b, which has no such parameter\n"


def test_paths_are_those_of_the_commands_folder(tmp_path, monkeypatch):
    """Prevents a leaderboard that lands beside the notebooks, a list of files that the kernel looks
    for there, and None or an empty text that becomes a folder."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "my.tsv").touch()
    names = ("leaderboard", "data_dir", "corpus", "tasks")
    path = notebook(tmp_path, "\n".join(f"{name}: str | None = 'x'" for name in names))
    given = {
        "leaderboard": "b.csv",
        "data_dir": "None",
        "corpus": "",
        "tasks": '["my.tsv", "STS12"]',
    }
    assert {name: assign({name: text}, [path])[path][name] for name, text in given.items()} == {
        "leaderboard": str(tmp_path / "b.csv"),
        "data_dir": None,
        "corpus": "",
        "tasks": json.dumps([str(tmp_path / "my.tsv"), "STS12"]),
    }


def test_what_is_no_parameters_cell(tmp_path):
    with pytest.raises(CselabError, match="has no cell tagged 'parameters'"):
        read_parameters(notebook(tmp_path, "a = 1", tag="other"))
    with pytest.raises(
        CselabError, match="'seed = compute\\(\\)' is not a plain literal; move it to a later cell"
    ):
        read_parameters(notebook(tmp_path, "seed = compute()"))
    for source in ("seed: int", "seed, steps = (1, 2)", "seed: Literal[x] = 1"):
        with pytest.raises(CselabError, match="is not a plain literal"):
            read_parameters(notebook(tmp_path, source))
    for source in ("%matplotlib inline\na = 1", "a = 1\0"):
        with pytest.raises(CselabError, match="parameters cell: not plain Python .*; move what"):
            read_parameters(notebook(tmp_path, source))
    (tmp_path / "03_broken.ipynb").write_text("{")
    with pytest.raises(CselabError, match="03_broken.ipynb is not a notebook"):
        read_parameters(tmp_path / "03_broken.ipynb")


def test_a_setting_that_the_cell_does_not_list_goes_into_settings(tmp_path, capsys):
    """Prevents `-p hub=True` that reaches one of three notebooks and says nothing."""
    takes = notebook(tmp_path, "seed: int = 42\nsettings: dict = {}", "01_a.ipynb")
    not_any = notebook(tmp_path, "seed: int = 42", "02_b.ipynb")
    values = assign({"seed": "3", "hub": "True", "caels": "2"}, [takes, not_any])
    assert values == {
        takes: {"seed": 3, "settings": {"hub": True, "caels": 2}},
        not_any: {"seed": 3},
    }
    said = capsys.readouterr().out.splitlines()
    assert said == [
        f"{name}: not taken by 02_b, which has no such parameter" for name in ("hub", "caels")
    ]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"hubb": "True"}, "unknown parameter 'hubb'; did you mean 'hub'"),
        ({"caels": "many"}, "caels: Input should be a valid integer.*got 'many'"),
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
    with pytest.raises(SettingsError, match="caels: .*greater than or equal to 0"):
        assign({"caels": "-1"}, [path])


def test_every_notebook_takes_every_setting_of_every_method(capsys):
    """Prevents a setting that one notebook knows and another refuses, drops or cannot read, as it
    once dropped `head=none`."""
    texts = {
        place[-1]: value if isinstance(value, str) else json.dumps(value, default=str)
        for method in method_names()
        for place, value, _ in configure(method).leaves()
        if value is not None and place[-1] not in ("profile", "method", "weight")
    }
    assert {"head", "caels", "corpus", "lora_rank", "outputs"} <= texts.keys()
    values = assign(texts, NOTEBOOKS)
    assert len(values) >= 13
    for given in values.values():
        assert {*given, *given.get("settings", {})} - {"settings"} == set(texts)
    assert not capsys.readouterr().out
