"""Committed notebooks: no outputs, stable, short cells, parameters that the settings know."""

import ast
import re
from pathlib import Path

import nbformat
import pytest

from cselab.batch.parameters import read_parameters
from cselab.settings import Settings

ROOT = Path(__file__).resolve().parents[2]
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))


@pytest.fixture(params=NOTEBOOKS, ids=lambda path: path.stem)
def notebook(request):
    return request.param, nbformat.read(request.param, as_version=4)


def test_there_are_notebooks():
    assert [path.stem[:2] for path in NOTEBOOKS if path.stem[0].isdigit()] == [f"{n:02}" for n in range(13)]


def test_no_outputs_no_local_kernel_and_stable_ids(notebook):
    """Prevents a diff of pictures, somebody's kernel name, and ids that change on every save."""
    path, nb = notebook
    nbformat.validate(nb)
    assert nb.metadata.kernelspec.name == "python3"
    ids = [cell.id for cell in nb.cells]
    assert len(set(ids)) == len(ids)
    for cell in nb.cells:
        if cell.cell_type == "code":
            assert not cell.outputs, f"{path.name} {cell.id}: run nbstripout"
            assert cell.execution_count is None


def test_a_chapter_starts_with_its_question_and_has_short_cells(notebook):
    path, nb = notebook
    assert nb.cells[0].cell_type == "markdown"
    assert nb.cells[0].source.startswith(f"# {path.stem.partition('_')[0]} · ")
    for word in ("**Question.**", "**Time and memory:**", "**At paper size**"):
        assert word in nb.cells[0].source
    assert any("## Exercises" in cell.source for cell in nb.cells)
    solutions = [cell for cell in nb.cells if "solution" in cell.metadata.get("tags", [])]
    assert all(cell.metadata["jupyter"]["source_hidden"] for cell in solutions)
    assert solutions or any("<summary>Solution" in cell.source for cell in nb.cells)
    for cell in nb.cells:
        if cell.cell_type == "code":
            assert len(cell.source.splitlines()) <= 15, f"{path.name} {cell.id} is too long"


def test_every_parameter_is_a_setting_and_reaches_the_lab(notebook):
    """Prevents a parameter that is accepted and then ignored."""
    path, nb = notebook
    parameters = read_parameters(path)
    assert list(parameters)[-1] == "settings"  # takes every other setting
    assert parameters.pop("settings").default == {}
    assert parameters.keys() - {"profile"} <= Settings.model_fields.keys()
    calls = [
        node
        for cell in nb.cells
        if cell.cell_type == "code"
        for node in ast.walk(ast.parse(cell.source))
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "open_lab"
    ]
    (call,) = calls
    assert call.args[0].value == path.stem
    *named, rest = call.keywords
    assert (rest.arg, rest.value.id) == (None, "settings")  # **settings, the last argument
    assert {keyword.arg: keyword.value.id for keyword in named} == {name: name for name in parameters}
    defaults = {name: parameter.default for name, parameter in parameters.items()}
    Settings.of(**defaults)


def test_solutions_in_the_text_are_python_that_knows_the_library(notebook):
    """Prevents a solution that nobody executes from calling what a stage is no longer called."""
    from cselab import evaluation, stages, views

    modules = {"evaluation": evaluation, "stages": stages, "views": views}
    _, nb = notebook
    for cell in nb.cells:
        if cell.cell_type == "markdown" and "<details>" in cell.source:
            for block in re.findall(r"```python\n(.*?)```", cell.source, re.DOTALL):
                for node in ast.walk(ast.parse(block)):
                    if isinstance(node, ast.Attribute) and getattr(node.value, "id", "") in modules:
                        assert hasattr(modules[node.value.id], node.attr), f"{node.value.id}.{node.attr}"
