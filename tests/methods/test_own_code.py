"""The code of a user's own method: what a cached training has to notice, and what it may ignore."""

import importlib.util
import sys

import pytest

from cselab.methods import SimCSE
from cselab.methods.own_code import own_code

FILE = '''
from functools import cached_property, partial, wraps

import helpers
from cselab.methods import SimCSE

MARGIN = 0.5
TABLE = {"a": [1, 2], "b": {3}}


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
    def term(self, vectors, context, ids):
        return scaled(vectors) + helpers.distant(TABLE["a"])


class Mine(Base):
    own_terms = ("term",)
    weights = {"term": 1.0}

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
'''
HELPERS = "def distant(x):\n    return x\n\n\nUNUSED = 1\n"


def code(folder, text, helpers):
    """The code of `Mine` in a file of its own, imported anew."""
    (folder / "helpers.py").write_text(helpers)
    path = folder / "mine.py"
    path.write_text(text)
    sys.path.insert(0, str(folder))
    try:
        for name in ("helpers", "mine"):
            sys.modules.pop(name, None)
        spec = importlib.util.spec_from_file_location("mine", path)
        module = importlib.util.module_from_spec(spec)
        sys.modules["mine"] = module
        spec.loader.exec_module(module)
        return own_code(module.Mine)
    finally:
        sys.path.remove(str(folder))


@pytest.mark.parametrize(("before", "after"), [
    ("return 2.0", "return 2.5"), ("return 3.0", "return 3.5"), ("[4.0", "[4.5"), ("return 5.0", "return 5.5"),
    ('"term": 1.0', '"term": 2.0'), ("MARGIN = 0.5", "MARGIN = 0.6"), ("x + 1", "x + 2"), ("[1, 2]", "[1, 3]"),
    ('("term",)', '("other",)'), ("+ helpers", "- helpers"), ("9 * f", "8 * f"), ("inner, 0.25", "inner, 0.5"),
    ("x - 11", "x - 13"), ("x - 12", "x - 13"),
], ids=["property", "cached property", "static method", "class method", "dictionary", "constant of a helper",
        "helper of a helper", "table", "tuple", "method of a base",
        "decorator", "partial", "first lambda", "second lambda"])  # fmt: skip
def test_whatever_a_method_uses_is_in_its_code(before, after, tmp_path):
    """Prevents an edited method from finding the training of the method that it was."""
    assert before in FILE
    (tmp_path / "one").mkdir()
    (tmp_path / "two").mkdir()
    one, two = code(tmp_path / "one", FILE, HELPERS), code(tmp_path / "two", FILE.replace(before, after), HELPERS)
    assert one != two


def test_a_module_of_the_user_is_in_it(tmp_path):
    (tmp_path / "one").mkdir()
    (tmp_path / "two").mkdir()
    one, two = (
        code(tmp_path / name, FILE, HELPERS.replace("return x", f"return {x}"))
        for name, x in (("one", "x"), ("two", "-x"))
    )
    assert one != two


def test_comments_docstrings_and_places_are_not(tmp_path):
    """Prevents a night of retraining because a comment was mended or a file was moved."""
    (tmp_path / "one").mkdir()
    (tmp_path / "two").mkdir()
    changed = FILE.replace('"""Comment."""', '"""Another."""').replace("return 2.0", "return 2.0  # why")
    assert code(tmp_path / "one", FILE, HELPERS) == code(tmp_path / "two", changed, HELPERS)


def test_the_librarys_own_methods_have_none():
    assert own_code(SimCSE) == ""
