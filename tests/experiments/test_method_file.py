"""A method of one's own, in a file or in a notebook's cell: trained, found again, trained anew when
it is changed."""

import sys

import pytest
from quick import same_weights

from cselab.errors import SettingsError
from cselab.experiments import PROFILES, configure
from cselab.methods import TrainingFree, load_method_file, register, registry, term
from cselab.methods.simcse import SimCSE

FILE = '''
"""A method in a file."""
from pydantic import Field

from cselab.methods import TermConfig, Terms, register, term
from cselab.methods.simcse import SimCSE


class Pull(TermConfig):
    """Towards a length."""

    length: float = 1.0


@register("mine")
class Mine(SimCSE):
    class Config(SimCSE.Config):
        terms: Terms = {"nce": 1, "pull": {"weight": 0.1, "length": 2.0}}
        depth: int = Field(3, ge=1)

    @term(Pull)
    def pull(self, outputs, step):
        # towards a length
        away = outputs.sentence.norm(dim=-1) - self.terms["pull"].length
        return away.square().mean() / self.settings.depth
'''


@pytest.fixture(autouse=True)
def modules_of_this_test(own_registry):
    """What a test registers is gone after it, and the modules of its files."""
    modules = set(sys.modules)
    yield
    for name in set(sys.modules) - modules:
        if name.startswith("cselab_method_"):
            del sys.modules[name]


@pytest.fixture
def load(tmp_path):
    """`load(before, after)`: register the method of the file, after an edit."""

    def load(before: str = "", after: str = "", folder: str = "."):
        path = tmp_path / folder / "my_method.py"
        path.parent.mkdir(exist_ok=True)
        assert before in FILE
        path.write_text(FILE.replace(before, after) if before else FILE)
        load_method_file(path)

    return load


@pytest.fixture
def trained(lab, capsys):
    """`trained(method)`: the encoder, and whether it was trained just now."""

    def trained(method, **changes):
        capsys.readouterr()
        encoder = lab.train(method, **changes).encoder
        return encoder, f"{method}-fr: computed" in capsys.readouterr().out

    return trained


def test_a_file_is_a_method_like_any_other(load, trained, lab):
    """Prevents a method that trains and cannot be configured, checked, summed or distilled."""
    load()
    changes = {"depth": 1, "terms.pull": 0.5, "terms.pull.length": 4}
    config = configure("mine", changes=changes).method
    assert (config.depth, config.terms["pull"].weight, config.terms["pull"].length) == (1, 0.5, 4)
    with pytest.raises(SettingsError, match=r"depth: expected 1 or more, got 0"):
        configure("mine", changes={"depth": 0})
    lab.check("mine")
    first, new = trained("mine")
    assert new
    other, new = trained("mine", **changes)
    assert new
    assert not same_weights(first, other)
    both = lab.train("sum", **{"towers.method": "mine"})
    assert not same_weights(both.encoder.tower_i, both.encoder.tower_ii)
    student = lab.train("distilled", **{"teacher.method": "mine"})
    assert student.config.teacher.depth == 3


@pytest.mark.parametrize(
    ("after", "message"),
    [
        ("away.sqare().mean()", r"mine: my_method\.py, line 25: AttributeError: .*'sqare'.*;"),
        ("away.square()", r"mine: term 'pull' gives \(2, 8\), expected one number"),
        ("[away]", r"mine: term 'pull' gives list, expected one number"),
    ],
)
def test_a_mistake_in_a_term_is_found_before_any_training(load, lab, after, message):
    """Prevents a traceback after the hours in which the nodes before this one were trained."""
    load("away.square().mean() / self.settings.depth", after)
    with pytest.raises(SettingsError, match=message):
        lab.check("mine")


def test_a_shipped_method_is_not_replaced(load):
    """Prevents a sweep whose baseline is the class of a user's file."""
    with pytest.raises(SettingsError, match=r"my_method\.py: 'simcse' is a method of cselab"):
        load('"mine"', '"simcse"')
    assert registry.registered("simcse") is SimCSE


def test_every_profile_has_it(load):
    load()
    steps = {name: configure("mine", name).method.schedule.steps for name in PROFILES}
    assert steps == {name: configure("simcse", name).method.schedule.steps for name in PROFILES}


@pytest.mark.parametrize(
    ("before", "after", "anew"),
    [
        ("away.square()", "away.abs()", True),
        ("2.0", "3.0", True),
        ("# towards a length", "# a comment", False),
        ('"""Towards a length."""', '"""Another docstring."""', False),
    ],
)
def test_an_edit_of_the_code_trains_anew(load, trained, before, after, anew):
    """Prevents an edited method that finds the training of the method it was, and a training for
    a comment."""
    load()
    first, _ = trained("mine")
    load(before, after)
    again, new = trained("mine")
    assert new == anew
    assert same_weights(first, again) != anew


def test_a_copied_file_is_the_same_method(load, trained):
    """Prevents a key that holds where the file lies, as a sweep's workers have it elsewhere."""
    load()
    trained("mine")
    load(folder="elsewhere")
    assert not trained("mine")[1]


def test_a_change_that_no_source_shows_is_trained_if_asked(trained):
    """Prevents a user who cannot get rid of the model of the loss before."""

    def of_a_cell(scale, **options):
        @register("cell")
        class Cell(SimCSE):
            factor = scale

            @term
            def half(self, outputs, step):
                return self.factor * outputs.sentence.square().mean()

        return trained("cell", terms=["half"], **options)

    one, first = of_a_cell(0.5)
    again, second = of_a_cell(0.5)
    other, third = of_a_cell(-5.0, fresh=True)
    assert (first, second, third) == (True, False, True)
    assert same_weights(one, again)
    assert not same_weights(one, other)


def test_a_method_without_training(lab):
    """Prevents methods of one's own that have to be trained."""

    @register("lengths")
    class Lengths(TrainingFree):
        @classmethod
        def encoder(cls, config, materials):
            class Encoder:
                def encode(self, sentences):
                    import numpy

                    return numpy.array([[len(line), 1.0] for line in sentences])

            return Encoder()

    report = lab.evaluate({"lengths": lab.train("lengths")})["lengths"]
    assert set(report.scores) == {"Synthetic"}


def test_what_is_no_method_file_is_one_line(tmp_path):
    for text, message in {
        "x = 1\n": r'registers no method; put @register\("name"\) above its class',
        "import nowhere\n": "ModuleNotFoundError: No module named 'nowhere'; correct the file",
        "class\n": "SyntaxError: .*; correct the file",
    }.items():
        (tmp_path / "bad.py").write_text(text)
        with pytest.raises(SettingsError, match=message):
            load_method_file(tmp_path / "bad.py")
    with pytest.raises(SettingsError, match=r"no method file .*/none\.py; give a \.py file"):
        load_method_file(tmp_path / "none.py")
