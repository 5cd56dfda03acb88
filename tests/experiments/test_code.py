"""The code in a key: what a cached training has to notice, and what it may ignore."""

import importlib.util
import itertools
import subprocess
import sys
from pathlib import Path

import pytest

from cselab.experiments import code
from cselab.experiments.code import code_of, imported, library_hash
from cselab.experiments.own_code import own_code
from cselab.methods import method_names, registered

# ------------------------------------------------------------------------------------- the library


@pytest.fixture
def edited(monkeypatch, tmp_path):
    """Replaces text in a module of the library, for the hash alone: `edited(module, old, new)`."""
    find = code._file

    def edit(module: str, old: str, new: str) -> None:
        source = find(module).read_text()
        assert source.count(old) >= 1, f"{module} has no {old!r}"
        copy = tmp_path / f"{module}.py"
        copy.write_text(source.replace(old, new))
        monkeypatch.setattr(code, "_file", lambda name: copy if name == module else find(name))

    return edit


def codes(*names: str) -> list[str]:
    return [code_of(registered(name)) for name in names]


def test_an_edited_loss_retrains_the_methods_that_use_it_and_no_other(edited):
    """Prevents a twin that is found though its loss has changed, and a night of training SimCSE
    again because a twin's loss has."""
    names = ("tncse", "jtcse", "simcse", "esimcse", "bellm")
    before = codes(*names)
    edited("cselab.losses.icnce", "/ 2", "/ 3")
    changed = [old != new for old, new in zip(before, codes(*names), strict=True)]
    assert changed == [True, True, False, False, False]


@pytest.mark.parametrize("module", ["cselab.methods.jtcse", "cselab.training.trainer"])
def test_an_edited_docstring_or_comment_retrains_nothing(edited, module):
    """Prevents cached trainings that are lost because a sentence was improved."""
    before = codes("jtcse")
    edited(module, '."""', '. Reworded."""')
    assert codes("jtcse") == before
    edited(module, "\nfrom ", "\n# a comment\n\n\nfrom ")
    assert codes("jtcse") == before


@pytest.mark.parametrize(
    ("module", "old", "new"),
    [
        ("cselab.methods.jtcse", "depth // config.caels", "depth % config.caels"),
        ("cselab.methods.tncse", "TwinEncoder(tower_i, tower_ii", "TwinEncoder(tower_ii, tower_i"),
        ("cselab.models.cross_attention", "return ", "return None or "),
        ("cselab.training.trainer", "return ", "return None or "),
        ("cselab.data.batching", "return ", "return None or "),
        ("cselab.evaluation.sts", "return ", "return None or "),
    ],
)
def test_whatever_a_training_runs_is_in_its_code(edited, module, old, new):
    """Prevents an edited method, base class, model, trainer, batch or dev score that finds the
    training of the code before it."""
    before = codes("jtcse")
    edited(module, old, new)
    assert codes("jtcse") != before


def test_no_method_depends_on_plots_reports_or_the_command_line():
    """Prevents a training that an edit of a figure makes invalid."""
    outside = {"plots", "widgets", "reporting", "headless", "sweep", "cli", "analysis"}
    for name in method_names():
        found = imported(registered(name).__module__)
        assert not outside & {module.split(".")[1] for module in found if "." in module}, name
    found = imported("cselab.methods.simcse")
    assert "cselab.losses.info_nce" in found
    assert "cselab.losses.icnce" not in found


def test_an_unrelated_method_is_not_in_the_code_of_another():
    """Prevents a new baseline from retraining all others."""
    found = imported(registered("jtcse").__module__)
    others = {f"cselab.methods.{name}" for name in ("consert", "esimcse", "pcl", "bellm", "sif")}
    assert not found & others


# ---------------------------------------------------------------------------------- a user's method

FILE = '''
import re
from dataclasses import dataclass, field
from enum import Enum
from functools import cache, cached_property, partial, wraps
from pathlib import Path

import helpers
import numpy
import torch
from pydantic import field_validator

from cselab.losses import modulus_ratio
from cselab.methods import TermConfig, term
from cselab.methods.simcse import SimCSE

MARGIN = 0.5
TABLE = {"a": [1, 2], "b": {3}}
Kind = Enum("Kind", "whole part")
ACTIVATION = torch.tanh
PRECISION = torch.float16
WORDS = Path("one.txt")
KIND = Kind.whole
WEIGHTS = torch.tensor([1.0, 2.0])
SCALES = numpy.array([3.0, 4.0])
RATE = numpy.float32(0.5)
LAYERS = range(3)
PATTERN = re.compile("a+")
LOSS = torch.nn.CrossEntropyLoss(label_smoothing=0.1)


@dataclass
class Option:
    width: float
    unset: int = field(init=False)


OPTION = Option(1.5)
OPTION.itself = OPTION
SPARSE = torch.eye(2).to_sparse()
HALF = torch.tensor(0.5, dtype=torch.bfloat16)


@cache
def kept(x):
    return x + 21


@torch.jit.script
def compiled(x: float) -> float:
    return x + 22.0


def scaled(x):
    """Comment."""
    return inner(x) * MARGIN


def inner(x):
    return x + 1


def loud(function):
    @wraps(function)
    def louder(*given):
        return 9 * function(*given)

    return louder


half = partial(inner, 0.25)
first = lambda x: x - 11
second = lambda x: x - 12


class Base(SimCSE):
    @term
    def apart(self, outputs, step):
        return scaled(outputs) + helpers.distant(TABLE["a"])


class Mine(Base):
    class Config(Base.Config):
        power: int = 2

        @field_validator("power")
        @classmethod
        def _even(cls, power):
            return power // 2 * 2

    order = ("apart",)
    weights = {"apart": 1.0}

    @term
    def lengths(self, outputs, step):
        return modulus_ratio(*outputs.sentence).mean() * 7

    @property
    def slope(self):
        return 2.0

    @cached_property
    def offset(self):
        return 3.0

    @loud
    def wrapped(self):
        return half() + first(1) + second(2)

    @staticmethod
    def fixed():
        return [4.0 for _ in range(2)]

    @classmethod
    def made(cls):
        return 5.0

    def named(self):
        return ACTIVATION, PRECISION, WORDS, KIND

    def held(self):
        kept(1), compiled(1.0)
        return WEIGHTS, SCALES, RATE, LAYERS, PATTERN, LOSS, OPTION, SPARSE, HALF
'''
HELPERS = "def distant(x):\n    return x\n\n\nUNUSED = 1\n"
CHANGES = {
    "term": ("mean() * 7", "mean() * 8"),
    "property": ("return 2.0", "return 2.5"),
    "cached property": ("return 3.0", "return 3.5"),
    "static method": ("[4.0", "[4.5"),
    "class method": ("return 5.0", "return 5.5"),
    "dictionary": ('"apart": 1.0', '"apart": 2.0'),
    "constant of a helper": ("MARGIN = 0.5", "MARGIN = 0.6"),
    "helper of a helper": ("x + 1", "x + 2"),
    "table": ("[1, 2]", "[1, 3]"),
    "tuple": ('("apart",)', '("other",)'),
    "method of a base": ("+ helpers", "- helpers"),
    "decorator": ("9 * f", "8 * f"),
    "partial": ("inner, 0.25", "inner, 0.5"),
    "first lambda": ("x - 11", "x - 13"),
    "second lambda": ("x - 12", "x - 13"),
    "built-in function": ("torch.tanh", "torch.relu"),
    "data type": ("torch.float16", "torch.float32"),
    "path": ("one.txt", "two.txt"),
    "member of an enum": ("Kind.whole", "Kind.part"),
    "tensor": ("tensor([1.0", "tensor([1.1"),
    "number in half precision": ("tensor(0.5", "tensor(0.6"),
    "array": ("array([3.0", "array([3.1"),
    "number of numpy": ("float32(0.5)", "float32(0.6)"),
    "range": ("range(3)", "range(4)"),
    "pattern": ('"a+"', '"a*"'),
    "module of torch": ("label_smoothing=0.1", "label_smoothing=0.2"),
    "field of a data class": ("Option(1.5)", "Option(1.6)"),
    "cached function": ("x + 21", "x + 23"),
    "compiled function": ("x + 22.0", "x + 23.0"),
    "validator": ("power // 2 * 2", "power // 3 * 3"),
}


def mine(folder: Path, text: str = FILE, helpers: str = HELPERS) -> type:
    """`Mine` in a file of its own, imported anew."""
    folder.mkdir(exist_ok=True)
    (folder / "helpers.py").write_text(helpers)
    path = folder / "mine.py"
    path.write_text(text)
    sys.path.insert(0, str(folder))
    importlib.invalidate_caches()
    try:
        for name in ("helpers", "mine"):
            sys.modules.pop(name, None)
        spec = importlib.util.spec_from_file_location("mine", path)
        module = importlib.util.module_from_spec(spec)
        sys.modules["mine"] = module
        spec.loader.exec_module(module)
        return module.Mine
    finally:
        sys.path.remove(str(folder))


@pytest.fixture
def own(tmp_path):
    """The source that belongs to `Mine` of a text: `own(text=FILE, helpers=HELPERS)`."""
    numbers = itertools.count()
    yield lambda **files: own_code(mine(tmp_path / str(next(numbers)), **files))[0]
    for name in ("helpers", "mine"):
        sys.modules.pop(name, None)


@pytest.mark.parametrize(("before", "after"), CHANGES.values(), ids=CHANGES)
def test_whatever_a_users_method_uses_is_in_its_code(before, after, own):
    """Prevents an edited method from finding the training of the method that it was."""
    assert before in FILE
    assert own() != own(text=FILE.replace(before, after))


def test_a_module_of_the_user_is_in_it(own):
    """Prevents a helper file whose edits are not noticed."""
    assert own() != own(helpers=HELPERS.replace("return x", "return -x"))


def test_comments_docstrings_and_places_are_not_in_it(tmp_path):
    """Prevents a night of retraining because a comment was mended or a file was moved."""
    changed = FILE.replace('"""Comment."""', '"""Another."""')
    changed = changed.replace("return 2.0", "return 2.0  # why")
    one, two = mine(tmp_path / "one"), mine(tmp_path / "two", changed)
    assert code_of(one) == code_of(two)


def test_the_library_that_a_users_method_names_is_in_its_code(tmp_path, edited):
    """Prevents a user's method that is found though a loss of the library that it calls has
    changed."""
    kind = mine(tmp_path / "files")
    assert {"cselab.losses.modulus", "cselab.methods.simcse"} <= own_code(kind)[1]
    before = code_of(kind), code_of(registered("simcse"))
    edited("cselab.losses.modulus", "return ", "return None or ")
    assert code_of(kind) != before[0]
    assert code_of(registered("simcse")) == before[1]


def test_a_method_of_the_library_has_no_code_of_a_user():
    """Prevents keys that differ from machine to machine."""
    assert own_code(registered("simcse")) == ("", set())


PRINT = """
import sys
sys.path.insert(0, {tests!r})
from test_code import *
print(code_of(registered("jtcse")), code_of(mine(Path({folder!r}))), library_hash())
"""


def test_the_code_is_the_same_in_every_process(tmp_path):
    """Prevents a hash of what differs from process to process (addresses, orders of sets), so that
    nothing would ever be found again."""
    kind, folder = mine(tmp_path / "here"), tmp_path / "there"
    here = [code_of(registered("jtcse")), code_of(kind), library_hash()]
    program = PRINT.format(tests=str(Path(__file__).parent), folder=str(folder))
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout.split() == here, done.stderr[-2000:]
