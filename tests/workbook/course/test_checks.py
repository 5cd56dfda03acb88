"""Exercises: the verdict on an answer, and that every exercise can be done."""

import ast
import functools
import json
from pathlib import Path

import numpy
import pytest
import torch

import cselab
from cselab.analysis import trace
from cselab.data.sources import Source
from cselab.data.sts import StsData
from cselab.errors import SettingsError
from cselab.evaluation import score_pairs
from cselab.workbook import course
from cselab.workbook.course.exercises.measured import SENTENCE

NOTEBOOKS = Path(__file__).resolve().parents[3] / "notebooks"


@functools.cache
def code_cells(folder: Path) -> list[str]:
    """Sources of the code cells of a folder's notebooks, which have no outputs."""
    notebooks = [json.loads(path.read_text()) for path in sorted(folder.glob("*.ipynb"))]
    cells = [cell for nb in notebooks for cell in nb["cells"] if cell["cell_type"] == "code"]
    assert cells
    assert not any(cell["outputs"] for cell in cells)
    return ["".join(cell["source"]) for cell in cells]


@pytest.mark.parametrize("name", sorted(course.EXERCISES))
def test_every_exercise_is_asked_and_solved_once_and_to_do_at_first(name):
    """Prevents a check that no page asks for, one without a solution, and a page that greets its
    reader with an error."""
    starter, solution = (
        [cell for cell in code_cells(folder) if f'course.check("{name}"' in cell]
        for folder in (NOTEBOOKS, NOTEBOOKS / "solutions")
    )
    assert len(starter) == len(solution) == 1
    assert starter != solution
    *body, last = ast.parse(starter[0]).body
    encoders = {"backbone": None, "pretrained only": None}
    known = {"course": course, "scores": {}, "encoders": encoders, "hundred": []}
    exec(compile(ast.Module(body, []), name, "exec"), known)
    assert eval(compile(ast.Expression(last.value), name, "eval"), known).state == "to do"


MISTAKES = [
    pytest.param(name, sentence, answer, id=f"{name}-{sentence:.20}")
    for name, exercise in sorted(course.EXERCISES.items())
    for sentence, answer in getattr(exercise, "mistakes", {}).items()
]


@pytest.mark.parametrize(("name", "sentence", "answer"), MISTAKES)
def test_a_known_mistake_is_named(name, sentence, answer):
    """Prevents "wrong" without a word on what to look at, a mistake that is called right, and two
    mistakes that are taken for one another."""
    exercise = course.EXERCISES[name]
    verdict = course.check(name, answer)
    assert (verdict.state, verdict.message) == ("not right yet", sentence)
    assert course.check(name, exercise.expected).message == exercise.shows


@pytest.mark.parametrize(
    ("name", "answer", "state", "message"),
    [
        ("02.1", lambda a, b, t: ..., "to do", "Replace the dots"),
        ("02.1", lambda a, b, t: torch.zeros(3), "not right yet", "shape (3,), expected () (one"),
        ("02.1", lambda a, b, t: torch.tensor(1.0), "not right yet", "is 1.0000, expected"),
        ("02.1", lambda a, b, t: a @ b, "not right yet", "RuntimeError"),
        ("03.3", {"query", "value"}, "not right yet", "its own queries"),
        ("03.3", {"value"}, "right", "no weight is added"),
        ("10.1", lambda n: torch.full((n, n), -torch.inf).triu(2), "not right yet", "[0, 1]: 0.0"),
        ("07.2", 0.5, "not right yet", "too high"),
        ("13.3", (50, 95), "not right yet", "contradicted, not entailed"),
    ],
)
def test_any_other_answer_is_compared_with_the_right_one(name, answer, state, message):
    """Prevents a traceback for a reader's typing error, and "-inf, expected -inf"."""
    verdict = course.check(name, answer)
    assert verdict.state == state
    assert message in verdict.message


def test_an_answer_may_change_its_arguments():
    """Prevents a right answer that is called wrong because it works in place."""
    assert course.check("05.1", lambda x, gain: x.mul_(gain).norm(dim=1))


def test_an_unknown_exercise_names_the_nearest():
    with pytest.raises(SettingsError, match="did you mean '02.1'"):
        course.check("02.11", None)


def test_intervals_that_overlap_are_compared_pair_by_pair():
    """Prevents "no difference" as the right answer where two intervals overlap."""
    noise = numpy.random.default_rng(0).normal(size=(3, 400))
    ratings = numpy.arange(400.0) % 6
    texts = [str(i) for i in range(400)]
    pairs = StsData("T", "test", texts, texts, ratings, None, Source("folder", "here"))
    base = ratings + 2 * noise[0]
    cosines = {"base": base, "same": base + 0.01 * noise[1], "worse": base + 1.5 * noise[2]}
    scores = {name: score_pairs(pairs, values) for name, values in cosines.items()}
    assert scores["worse"].high > scores["base"].low
    found = {n: course.check("07.3", n, scores=scores, against="base") for n in (0, 1, 2)}
    assert [bool(verdict) for verdict in found.values()] == [False, True, False]
    assert "worse" in found[1].message
    assert found[2].message == "This is the number of intervals that overlap."


def test_the_head_that_looks_back_is_found_in_each_layer():
    """Prevents a head counted from 0, and one that looks at the next token."""
    encoder = cselab.load("tiny-bert")
    ids = encoder.tokenizer(SENTENCE, return_tensors="pt")["input_ids"]
    maps = trace(encoder.backbone, ids).attention[:, 0]

    def most(step: int) -> tuple[int, int]:
        tokens = range(1, maps.shape[-1])
        shares = {
            (layer, head): sum(one[i, i - 1] if step < 0 else one[i - 1, i] for i in tokens)
            for layer, heads in enumerate(maps, 1)
            for head, one in enumerate(heads, 1)
        }
        return max(shares, key=lambda place: shares[place])

    back, ahead = most(-1), most(1)
    verdicts = [course.check("06.3", place, encoder=encoder) for place in (back, ahead)]
    assert verdicts[0]
    assert "next token" in verdicts[1].message
    from_zero = course.check("06.3", (back[0] - 1, back[1] - 1), encoder=encoder)
    assert from_zero.message == "Count layers and heads from 1."
