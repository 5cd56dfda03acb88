"""Committed notebooks: no outputs, stable, short cells, parameters that reach the lab."""

import ast
import importlib
import re
from importlib.util import find_spec
from pathlib import Path

import nbformat
import pytest
from papermill.inspection import inspect_notebook

import cselab.analysis
from cselab import evaluation, losses
from cselab.experiments import Lab
from cselab.experiments.run import setting_names
from cselab.study import paper_vs_code
from cselab.workbook import plots, widgets
from cselab.workbook.headless.parameters import read_parameters

ROOT = Path(__file__).resolve().parents[2]
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
SOLUTIONS = sorted((ROOT / "notebooks" / "solutions").glob("*.ipynb"))
LONGEST_CELL = 27
OWN_PARAMETERS = {"seeds", "checkpoints", "tasks", "languages", "entry", "leaderboard"}
OWN_PARAMETERS |= {"counts", "subsets", "removed", "methods", "baselines"}
"""Read by a notebook's own cells; all others are settings."""


@pytest.fixture(params=NOTEBOOKS, ids=lambda path: path.stem)
def notebook(request):
    return request.param, nbformat.read(request.param, as_version=4)


def code_cells(nb):
    return [cell for cell in nb.cells if cell.cell_type == "code"]


def calls(nb, name):
    """Calls of a function by its name, in all code cells."""
    return [
        node
        for cell in code_cells(nb)
        for node in ast.walk(ast.parse(cell.source))
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == name
    ]


def test_no_outputs_no_local_kernel_and_stable_ids(notebook):
    """Prevents a diff of pictures, somebody's kernel name, and ids that change on every save."""
    path, nb = notebook
    nbformat.validate(nb)
    assert nb.metadata.kernelspec.name == "python3"
    ids = [cell.id for cell in nb.cells]
    assert len(set(ids)) == len(ids)
    for cell in code_cells(nb):
        assert not cell.outputs, f"{path.name} {cell.id}: run nbstripout"
        assert cell.execution_count is None


def test_cells_are_short_and_those_that_make_a_text_folded(notebook):
    """Prevents an answer whose code stands open above it."""
    path, nb = notebook
    for cell in code_cells(nb):
        length, tags = len(cell.source.splitlines()), cell.metadata.get("tags", [])
        assert length <= LONGEST_CELL, f"{path.name} {cell.id} has {length} lines"
        if "text" in tags:
            assert cell.metadata["jupyter"]["source_hidden"]


def test_every_parameter_is_used_and_takes_every_setting(notebook):
    """Prevents a parameter that is accepted and then ignored."""
    path, nb = notebook
    parameters = read_parameters(path)
    assert list(inspect_notebook(path)) == list(parameters)  # to papermill, others are unknown
    assert list(parameters)[-1] == "settings"
    assert parameters.pop("settings").default == {}
    (call,) = calls(nb, "open_lab")
    assert call.args[0].value == path.stem
    passed = {keyword.arg: keyword.value.id for keyword in call.keywords}
    assert passed == {name: name for name in passed}
    assert passed.keys() == parameters.keys() - OWN_PARAMETERS | {"settings"}
    assert passed.keys() <= setting_names() | {"settings"}
    read = {
        node.id
        for cell in code_cells(nb)
        for node in ast.walk(ast.parse(cell.source))
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)
    }
    assert parameters.keys() <= read


@pytest.mark.parametrize("path", [*NOTEBOOKS, *SOLUTIONS], ids=lambda path: path.stem)
def test_what_a_notebook_imports_of_the_library_exists(path):
    """Prevents a module that moved and a notebook that still imports it from its old place."""
    for cell in code_cells(nbformat.read(path, as_version=4)):
        for node in ast.walk(ast.parse(cell.source)):
            if isinstance(node, ast.ImportFrom) and str(node.module).startswith("cselab"):
                module = importlib.import_module(str(node.module))
                for name in (alias.name for alias in node.names):
                    assert hasattr(module, name) or find_spec(f"{node.module}.{name}"), name


def test_code_in_the_text_knows_the_library(notebook):
    """Prevents a solution that nobody executes from calling what no longer has that name."""
    modules = {
        "analysis": cselab.analysis,
        "evaluation": evaluation,
        "lab": Lab,
        "losses": losses,
        "paper_vs_code": paper_vs_code,
        "plots": plots,
        "widgets": widgets,
    }
    attributes = {"lab": {"device", "notebook", "profile", "run_dir", "seed", "session"}}
    _, nb = notebook
    for cell in nb.cells:
        if cell.cell_type != "markdown":
            continue
        blocks = re.findall(r"```python\n(.*?)```", cell.source, re.DOTALL)
        for node in (node for block in blocks for node in ast.walk(ast.parse(block))):
            if isinstance(node, ast.Attribute) and getattr(node.value, "id", "") in modules:
                name = node.value.id
                known = hasattr(modules[name], node.attr) or node.attr in attributes.get(name, ())
                assert known, f"{name}.{node.attr}"
