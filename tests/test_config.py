"""Changes of configurations by dotted path: which field is meant, and what is an error."""

import pytest
from pydantic import Field

from cselab.config import Config, read_value, shared
from cselab.errors import SettingsError
from cselab.experiments import configure


class Schedule(Config):
    steps: int = Field(10, ge=1)
    rate: float = 0.1


class Tower(Config):
    pivot: str = "fr"
    temperature: float = 0.05
    backbone: str = shared("small")
    schedule: Schedule = Schedule()


class Twin(Config):
    temperature: float = 0.05
    """Of stage 2."""
    schedule: Schedule = Schedule(steps=5)
    towers: tuple[Tower, Tower] = (Tower(), Tower(pivot="ru"))
    first: Schedule = Schedule()
    second: Schedule = Schedule()


class Student(Config):
    backbone: str = shared("small")
    teacher: Twin = Twin()


TWIN = Twin()


def towers(twin: Twin, field: str) -> list:
    return [getattr(tower, field) for tower in twin.towers]


def test_a_short_path_means_the_field_nearest_to_the_root():
    """Prevents stage 2's temperature from reaching the towers, which are trained before it."""
    changed = TWIN.changed({"temperature": 0.1})
    assert changed.temperature == 0.1
    assert towers(changed, "temperature") == [0.05, 0.05]
    assert TWIN.temperature == 0.05


def test_a_path_through_a_tuple_sets_each_member_and_a_number_one_of_them():
    """Prevents two towers of different temperatures from a setting that names no tower."""
    changed = TWIN.changed({"towers.temperature": 0.1, "towers.1.steps": 7})
    assert towers(changed, "temperature") == [0.1, 0.1]
    assert [tower.schedule.steps for tower in changed.towers] == [10, 7]
    assert towers(changed, "pivot") == ["fr", "ru"]
    assert changed.temperature == 0.05


def test_steps_of_a_path_may_be_left_out_but_not_exchanged():
    """Prevents a path that is set somewhere although it names another place."""
    student = Student().changed({"towers.rate": 0.3, "teacher.temperature": 0.2})
    assert [tower.schedule.rate for tower in student.teacher.towers] == [0.3, 0.3]
    assert student.teacher.temperature == 0.2
    with pytest.raises(SettingsError, match=r"unknown setting 'temperature\.teacher'"):
        Student().changed({"temperature.teacher": 0.2})


def test_a_shared_field_is_set_wherever_it_is():
    """Prevents a student on one backbone whose teacher was trained from another."""
    student = Student().changed({"backbone": "large"})
    assert student.backbone == "large"
    assert towers(student.teacher, "backbone") == ["large", "large"]
    alone = Student().changed({"towers.backbone": "large"})
    assert (alone.backbone, *towers(alone.teacher, "backbone")) == ("small", "large", "large")


def test_a_path_that_fits_two_fields_equally_well_names_both():
    """Prevents a guess which of two fields is meant."""
    with pytest.raises(SettingsError) as caught:
        TWIN.changed({"rate": 0.5})
    message = "'rate' fits several settings; write first.rate or schedule.rate or second.rate"
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("path", "nearest"),
    [
        ("temprature", "temperature"),
        ("towers.temprature", "towers.temperature"),
        ("towers.2.pivot", "towers.pivot"),
        ("tower.pivot", "towers.pivot"),
    ],
)
def test_an_unknown_path_names_the_nearest(path, nearest):
    """Prevents a typo from silently training with the default."""
    with pytest.raises(SettingsError) as caught:
        TWIN.changed({path: 1})
    assert str(caught.value) == f"unknown setting {path!r}; did you mean {nearest!r}?"


def test_a_nested_mapping_is_paths():
    """Prevents a mapping that replaces a configuration, and with it all it does not mention."""
    changed = TWIN.changed({"towers": {"temperature": 0.1, "0": {"schedule": {"steps": 3}}}})
    assert towers(changed, "temperature") == [0.1, 0.1]
    assert [tower.schedule for tower in changed.towers] == [Schedule(steps=3), Schedule()]


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        ("towers.steps", 0, r"^steps: expected 1 or more, got 0$"),
        ("temperature", "hot", r"^temperature: expected a number, got 'hot'$"),
        ("temperature", float("nan"), r"^temperature: expected a finite number, got nan$"),
        (
            "schedule",
            3,
            r"^schedule: expected its settings by name .*, got 3$",
        ),
    ],
)
def test_a_bad_value_is_one_line_that_names_the_field(path, value, message):
    with pytest.raises(SettingsError, match=message) as caught:
        TWIN.changed({path: value})
    assert "\n" not in str(caught.value)


def test_leaves_say_where_a_value_comes_from():
    found = {".".join(place): (value, source) for place, value, source in TWIN.leaves()}
    assert found["temperature"] == (0.05, "Of stage 2.")
    assert found["towers.1.pivot"] == ("ru", "")
    assert "towers" not in found


def test_a_value_has_the_text_below_it_and_none_of_another_default():
    """Prevents the source of a default that a class has replaced, and a traceback of `cselab
    settings` for a method whose class calls something."""

    class Calling(Twin):
        temperature: float = 0.1
        len("a call")
        extra: int = 1
        """Ours."""

    found = {".".join(place): source for place, _, source in Calling().leaves()}
    assert (found["temperature"], found["extra"]) == ("", "Ours.")


def test_values_of_a_command_line_are_read():
    """Prevents `-p hub=False` that is true, `-p head=none` that is left out, and a name that is
    read as JSON's."""
    for text, value in {"0.1": 0.1, "2": 2, "true": True, "False": False, "None": None}.items():
        assert read_value(text) is value or read_value(text) == value
    for text, value in {"none": "none", '["nce"]': ["nce"], "fr,ru": "fr,ru"}.items():
        assert read_value(text) == value


# ------------------------------------------------------------------------------ terms of a loss


def terms(method: str, **changes) -> dict[str, float]:
    """The weights of a method's terms after changes."""
    run = configure(method, changes=changes)
    return {name: term.weight for name, term in run.method.terms.items()}


def test_terms_are_replaced_as_a_whole_and_set_one_by_one():
    """Prevents an ablation that keeps the term it is to leave out."""
    assert terms("jtcse") == {"nce": 1, "icnce": 1, "ictm": 1}
    assert terms("jtcse", terms=["nce", "icnce"]) == {"nce": 1, "icnce": 1}
    assert terms("jtcse", terms={"nce": 1, "ictm": 0.1}) == {"nce": 1, "ictm": 0.1}
    assert terms("jtcse", **{"terms.ictm": 0.1}) == {"nce": 1, "icnce": 1, "ictm": 0.1}
    assert terms("jtcse", **{"terms.ictm": 0}) == {"nce": 1, "icnce": 1}
    added = terms("jtcse", **{"terms.dcl.temperature": 2.0})
    assert added == {"nce": 1, "icnce": 1, "ictm": 1, "dcl": 0.1}


def test_a_weight_keeps_the_hyperparameters_of_its_term():
    """Prevents a sweep over a term's weight in which the term is another one."""
    variant = {"terms.ictm.variant": "released", "terms.dcl.temperature": 2.0}
    once = configure("jtcse", changes=variant)
    for other in ({"terms": {"nce": 1, "ictm": 0.1, "dcl": 0.3}}, {"terms.ictm": 0.1}):
        found = once.changed(other).method.terms
        assert (found["ictm"].weight, found["ictm"].variant) == (0.1, "released")
        assert found["dcl"].temperature == 2.0
    assert once.changed({"terms": ["ictm"]}).method.terms["ictm"].variant == "released"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"terms": ["nce", "icnse"]}, "unknown term 'icnse'; did you mean 'icnce'"),
        ({"terms": ["nce", "nce"]}, "the term 'nce' is named twice"),
        ({"terms": {"nce": 0}}, "no term is left; give one of .* a weight"),
        ({"terms.ictm.varant": "released"}, "did you mean '.*ictm.variant'"),
        ({"terms.ictm.variant": "releasd"}, "variant: .*did you mean 'released'"),
        ({"terms.dcl": float("inf")}, "weight: .*finite.*got inf"),
    ],
)
def test_bad_terms_are_one_line(change, message):
    with pytest.raises(SettingsError, match=message) as caught:
        configure("jtcse", changes=change)
    assert "\n" not in str(caught.value)
