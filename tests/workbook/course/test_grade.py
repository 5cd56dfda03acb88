"""The automatic part of the graded assignment."""

import pandas
import pytest
from quick import QUICK, forget_imports

from cselab.errors import DataError, SettingsError
from cselab.experiments import PROFILES, Lab
from cselab.methods import registry
from cselab.workbook import course

METHOD = """
from cselab.methods import register
from cselab.methods.simcse import SimCSE

@register("{name}")
class Mine(SimCSE):
    class Config(SimCSE.Config):
        {body}
"""


@pytest.fixture
def write(tmp_path, own_registry):
    """Writes a method's file; what it registers is forgotten after the test."""

    def write(name, body="pass", file="mine.py"):
        path = tmp_path / file
        path.write_text(METHOD.format(name=name, body=body))
        return path

    return write


@pytest.fixture(scope="module")
def outputs(tmp_path_factory):
    """One folder for all tests, in which SimCSE is trained once."""
    return tmp_path_factory.mktemp("outputs")


@pytest.fixture
def grade(monkeypatch, small_backbone, outputs):
    """`course.grade` with three seeds and trainings of a moment."""
    forget_imports()
    monkeypatch.delenv("CSELAB_DATA", raising=False)
    monkeypatch.setitem(PROFILES, "quick", QUICK)
    few = {"backbone": small_backbone, "device": "cpu", "outputs": outputs, "steps": 2}

    def grade(path, **settings):
        return course.grade(path, seeds=(1, 2, 3), profile="quick", settings={**few, **settings})

    return grade


def test_simcse_by_another_name_has_no_point_for_beating_it(write, grade):
    """Prevents points for a method that changes nothing."""
    found = grade(write("same"))
    by_name = {line.criterion: line.points for line in found.lines}
    assert by_name["runs"] == 30
    assert by_name["mean above SimCSE's"] == 0
    assert by_name["the interval of the difference is above zero"] == 0
    assert (found.table["same"] == found.table["SimCSE"]).all()
    assert str(found).splitlines()[-1].endswith("of 100  in all")


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("pass\n\n    def compare(self, *_):\n        return 1 / 0\n", "division by zero"),
        ('terms: dict = {"nonsense": 1}', "nonsense"),
    ],
)
def test_an_error_of_a_method_is_a_grade_with_the_reason(body, reason, write, grade):
    """Prevents a class's grading that stops at the first broken file."""
    found = grade(write("broken", body))
    assert found.points == 0
    assert reason in found.lines[0].why


def test_a_class_of_files_may_use_one_name(write, grade, monkeypatch):
    """Prevents a grading that ends at the second file because the first had the same name, and one
    student's error in the grade of the next."""

    def over_seeds(lab, build, seeds):
        return pandas.DataFrame({name: [70.0, 71.0, 73.0] for name in build}, index=seeds)

    monkeypatch.setattr(Lab, "over_seeds", over_seeds)
    one, two = write("mine", file="ada.py"), write("mine", "dropout: float = 0.2", file="ben.py")
    broken = write("broken", 'terms: dict = {"nonsense": 1}', file="eve.py")
    points = [grade(path).lines[0].points for path in (one, broken, one, two)]
    assert points == [30, 0, 30, 30]
    assert registry.registered("mine").__module__.endswith("ben")


def test_settings_that_nothing_trains_with_are_no_grade(write, grade):
    """Prevents 0 points for every student of a class whose teacher gave too little text."""
    with pytest.raises(DataError, match="fewer than one batch"):
        grade(write("fine"), sentences=3)


def test_what_cannot_be_graded_is_one_line(write, tmp_path):
    """Prevents an hour of trainings before an error that could be seen at once."""
    two = write("one")
    two.write_text(two.read_text() + METHOD.format(name="two", body="pass"))
    mine = write("mine", file="other.py")
    for path, options, message in (
        (two, {}, "expected exactly one"),
        (two, {"seeds": (1, 2)}, "at least 3, got 2"),
        (mine, {"settings": {"seed": "x"}}, "seed is no setting of all trainings"),
        (write("SimCSE", file="third.py"), {}, "'SimCSE' is the baseline's name"),
        (tmp_path / "nothing.py", {}, "no method file"),
    ):
        with pytest.raises(SettingsError, match=message):
            course.grade(path, **options)
