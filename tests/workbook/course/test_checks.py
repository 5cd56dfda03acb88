"""Exercises: what a reader is told about an answer, and that every exercise can be done."""

import ast
import json
from pathlib import Path

import nbformat
import pytest
import torch

from cselab.errors import SettingsError
from cselab.losses import info_nce
from cselab.workbook import course

NOTEBOOKS = Path(__file__).resolve().parents[3] / "notebooks"


def cells_with(name: str, folder: Path) -> list[str]:
    """Code cells of a folder's notebooks that check an exercise."""
    call = f'course.check("{name}"'
    notebooks = [nbformat.read(path, as_version=4) for path in sorted(folder.glob("*.ipynb"))]
    return [cell.source for nb in notebooks for cell in nb.cells if call in cell.source]


@pytest.mark.parametrize("name", sorted(course.EXERCISES))
def test_every_exercise_is_asked_once_and_solved_once(name):
    """Prevents a check that no page asks for, and an exercise without a solution."""
    (starter,) = cells_with(name, NOTEBOOKS)
    (solution,) = cells_with(name, NOTEBOOKS / "solutions")
    assert "..." in starter or "None" in starter
    assert starter != solution


@pytest.mark.parametrize("name", sorted(course.EXERCISES))
def test_a_starter_is_to_do_not_wrong(name):
    """Prevents a page that greets its reader with an error."""
    (starter,) = cells_with(name, NOTEBOOKS)
    *body, last = ast.parse(starter).body
    known = {"course": course, "scores": {}, "encoders": {"backbone": None}, "hundred": []}
    exec(compile(ast.Module(body, []), name, "exec"), known)
    assert eval(compile(ast.Expression(last.value), name, "eval"), known).state == "to do"


def test_a_function_that_returns_nothing_is_to_do():
    assert course.check("02.1", lambda a, b, temperature: ...).state == "to do"


def test_a_wrong_answer_is_told_what_is_wrong():
    """Prevents "wrong" without a word on what to look at."""
    verdict = course.check("02.1", lambda a, b, t: info_nce(a, b, temperature=t))
    assert not verdict
    assert "Let every view" in verdict.message
    shape = course.check("02.1", lambda a, b, t: torch.zeros(3))
    assert "shape (3,), expected () (one number)" in shape.message
    value = course.check("02.1", lambda a, b, t: torch.tensor(1.0))
    assert "expected" in value.message


def test_an_answer_may_change_its_arguments():
    """Prevents a right answer that is called wrong because it works in place."""

    def in_place(normalised, gain):
        normalised *= gain
        return normalised.norm(dim=1)

    assert course.check("05.1", in_place)


def test_a_wrong_mask_is_shown_where_it_is_wrong():
    """Prevents "differs at [0, 2]: -inf, expected -inf"."""
    verdict = course.check("10.1", lambda n: torch.full((n, n), -torch.inf).triu(2))
    assert "[0, 1]: 0.0000, expected -inf" in verdict.message


def test_an_error_in_the_answer_is_a_verdict():
    """Prevents a traceback through the library for a reader's typing error."""
    verdict = course.check("02.1", lambda a, b, t: a @ b)
    assert verdict.state == "not right yet"
    assert "RuntimeError" in verdict.message


def test_an_unknown_exercise_names_the_nearest():
    with pytest.raises(SettingsError, match="did you mean '02.1'"):
        course.check("02.11", None)


def test_no_output_is_committed_with_a_solution():
    solutions = list((NOTEBOOKS / "solutions").glob("*.ipynb"))
    assert solutions
    for path in solutions:
        for cell in json.loads(path.read_text())["cells"]:
            assert not cell.get("outputs"), f"{path.name}: run nbstripout"
