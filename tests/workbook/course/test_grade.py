"""The automatic part of the graded assignment."""

import pytest
from quick import QUICK, forget_imports

from cselab.errors import DataError, SettingsError
from cselab.experiments import PROFILES
from cselab.methods import method_names, registry
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
def write(tmp_path, monkeypatch):
    """Writes a method's file; what it registers is forgotten after the test."""
    method_names()  # finds the shipped ones, once a process
    monkeypatch.setattr(registry, "_METHODS", dict(registry._METHODS))

    def write(name, body="pass", file="mine.py"):
        path = tmp_path / file
        path.write_text(METHOD.format(name=name, body=body))
        return path

    return write


@pytest.fixture
def settings(tmp_path, monkeypatch, small_backbone):
    forget_imports()
    monkeypatch.delenv("CSELAB_DATA", raising=False)
    monkeypatch.setitem(PROFILES, "quick", QUICK)
    return {"backbone": small_backbone, "device": "cpu", "outputs": tmp_path / "outputs"}


def test_simcse_by_another_name_has_no_point_for_beating_it(write, settings):
    """Prevents points for a method that changes nothing."""
    found = course.grade(
        write("same"), seeds=(1, 2, 3), profile="quick", settings={**settings, "steps": 2}
    )
    by_name = {line.criterion: line.points for line in found.lines}
    assert by_name["runs"] == 30
    assert by_name["mean above SimCSE's"] == 0
    assert by_name["the interval of the difference is above zero"] == 0
    assert (found.table["same"] == found.table["SimCSE"]).all()
    assert str(found).splitlines()[-1].endswith("of 100  in all")


def test_a_class_of_files_may_use_one_name(write, settings):
    """Prevents a grading that ends at the second file because the first had the same name."""
    few = dict(seeds=(1, 2, 3), profile="quick", settings={**settings, "steps": 2})
    one, two = write("mine", file="ada.py"), write("mine", "dropout: float = 0.2", file="ben.py")
    for path in (one, one, two):
        assert course.grade(path, **few).lines[0].points == 30
    assert registry.registered("mine").__module__.endswith("ben")


def test_any_error_of_a_method_is_a_grade(write, settings):
    """Prevents a class's grading that stops at a file with an error in its training."""
    body = "pass\n\n    def compare(self, *_):\n        return 1 / 0\n"
    few = dict(seeds=(1, 2, 3), profile="quick", settings={**settings, "steps": 2})
    found = course.grade(write("divides", body), **few)
    assert found.points == 0
    assert "division by zero" in found.lines[0].why


def test_a_method_that_cannot_be_trained_has_a_grade_with_the_reason(write, settings):
    """Prevents a class's grading that stops at the first broken file, and
    one student's error in the grade of the next."""
    few = dict(seeds=(1, 2, 3), profile="quick", settings={**settings, "steps": 2})
    found = course.grade(write("broken", 'terms: dict = {"nonsense": 1}'), **few)
    assert found.points == 0
    assert "nonsense" in found.lines[0].why
    assert course.grade(write("fine", file="fine.py"), **few).lines[0].points == 30


def test_settings_that_nothing_trains_with_are_no_grade(write, settings):
    """Prevents 0 points for every student of a class whose teacher gave too little text."""
    few = {**settings, "steps": 2, "sentences": 3}
    with pytest.raises(DataError, match="fewer than one batch"):
        course.grade(write("fine"), seeds=(1, 2, 3), profile="quick", settings=few)


def test_what_cannot_be_graded_is_one_line(write, tmp_path):
    two = write("one")
    two.write_text(two.read_text() + METHOD.format(name="two", body="pass"))
    with pytest.raises(SettingsError, match="expected exactly one"):
        course.grade(two)
    with pytest.raises(SettingsError, match="at least 3, got 2"):
        course.grade(two, seeds=(1, 2))
    for name in ("profile", "seed", "notebook"):
        with pytest.raises(SettingsError, match=f"{name} is no setting of all trainings"):
            course.grade(write("mine"), settings={name: "x"})
    with pytest.raises(SettingsError, match="'SimCSE' is the baseline's name"):
        course.grade(write("SimCSE"))
    with pytest.raises(SettingsError, match="no method file"):
        course.grade(tmp_path / "nothing.py")
