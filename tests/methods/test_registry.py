"""Methods by name: shipped ones, a user's own, and files that come and go."""

import itertools
import shutil
import subprocess
import sys
from collections import Counter

import pytest
import torch
from build_method import build
from method_helpers import HEADS
from pydantic import Field

from cselab.data.sources import embedded_dir
from cselab.errors import SettingsError
from cselab.experiments.code import PACKAGE, code_of
from cselab.methods import (
    Method,
    StepContext,
    Terms,
    create,
    load_method_file,
    method_names,
    register,
    registered,
    term,
)
from cselab.methods.registry import method_sources, registered_by

SimCSE = registered("simcse")


def test_an_unknown_method_and_a_wrong_number_of_towers(towers):
    """Prevents a twin of one tower, and an error that names no way out."""
    with pytest.raises(SettingsError, match="unknown method 'jtcs'; did you mean 'jtcse'"):
        create("jtcs")
    with pytest.raises(SettingsError, match="'jtcse' has 2 towers .* got 1"):
        create("jtcse", folders=towers[:1])
    with pytest.raises(SettingsError, match="'sum' is not trained"):
        create("sum", folders=towers)


def test_a_users_own_method_is_registered_by_one_decorator(own_registry, towers, batch):
    """Prevents a method of a notebook cell that only the library can see, and a subclass's
    configuration that is its parent's."""

    @register("only_alignment")
    class OnlyAlignment(SimCSE):
        class Config(SimCSE.Config):
            terms: Terms = Field({"alignment": 1})
            power: int = 2

        @term
        def alignment(self, outputs, step):
            a, b = outputs.sentence
            return (a - b).norm(dim=-1).pow(self.settings.power).mean()

    method = build("only_alignment", towers, power=3, dropout=0.3)
    assert isinstance(method, Method)
    assert method.losses(batch, HEADS)["alignment"].item() == pytest.approx(0, abs=1e-9)
    assert method.train().losses(batch, HEADS)["alignment"] > 0
    assert (method.settings.method, method.settings.power) == ("only_alignment", 3)
    assert SimCSE.Config.name == "simcse"
    assert list(SimCSE.Config().terms) == ["nce"]


FILE = """
from cselab.methods import register
from cselab.methods.simcse import SimCSE

@register("{name}")
class Mine(SimCSE):
    scale = {scale}
"""


def test_a_method_file_is_read_again_when_it_changes(own_registry, tmp_path):
    """Prevents a sweep that trains the method as it was when the session began, and a method of a
    refused file from being trained, or from taking the place of the one that was there."""
    path = tmp_path / "my_method.py"
    path.write_text(FILE.format(name="mine", scale=1))
    load_method_file(path)
    first, before = registered("mine"), method_names()
    load_method_file(path)
    assert registered("mine") is first
    both = (FILE.format(name=name, scale=2) for name in ("mine", "more"))
    path.write_text("".join([*both, "1 / 0"]))
    with pytest.raises(SettingsError, match="ZeroDivisionError"):
        load_method_file(path)
    assert method_names() == before
    assert registered("mine") is first
    path.write_text(FILE.format(name="mine", scale=2))
    load_method_file(path)
    assert (first.scale, registered("mine").scale) == (1, 2)


BESIDE = """from cselab.methods import register
from cselab.methods.simcse import SimCSE
from helpers import scale

@register("beside")
class Beside(SimCSE):
    scale = scale()

    def later(self):
        from later import last
        return last
"""


def test_a_method_file_imports_the_files_beside_it(own_registry, tmp_path):
    """Prevents a method that cannot be split over files, the helpers of another folder under the
    same names, an edit that is not read again, and keys without the helpers' code."""
    one, two = tmp_path / "one", tmp_path / "two"
    for folder, scale in ((one, 1), (two, 2)):
        (folder / "parts").mkdir(parents=True)
        (folder / "my_method.py").write_text(BESIDE)
        helper = "from parts.deep import SCALE\ndef scale():\n    return SCALE"
        (folder / "helpers.py").write_text(helper)
        (folder / "parts" / "deep.py").write_text(f"SCALE = {scale}")
        (folder / "later.py").write_text(f"last = {scale}")
        (folder / "unused.py").write_text("1 / 0")
    names = [name for name, _ in method_sources(one / "my_method.py")]
    assert names == ["my_method.py", "helpers.py", "later.py", "parts/deep.py"]

    def loaded(folder):
        assert registered_by(folder / "my_method.py") == ["beside"]
        method = registered("beside")
        return method.scale, method.later(None), code_of(method)

    first, second = loaded(one), loaded(two)
    assert (first[:2], second[:2]) == ((1, 1), (2, 2))
    (two / "later.py").write_text("last = 3")
    third = loaded(two)
    assert third[:2] == (2, 3)
    assert len({first[2], second[2], third[2]}) == 3
    assert not list(tmp_path.rglob("__pycache__"))
    (two / "helpers.py").rename(two / "torch.py")
    (two / "my_method.py").write_text(BESIDE.replace("helpers", "torch"))
    with pytest.raises(SettingsError, match="torch.py has the name of an installed module; rename"):
        loaded(two)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (None, "no method file .*give a .py file"),
        ("x = 1", "registers no method; put @register"),
        ("import nothing_like_this", "ModuleNotFoundError: .*nothing_like_this.*correct the file"),
        ("def", "SyntaxError"),
    ],
)
def test_a_method_file_that_is_none_is_refused(own_registry, tmp_path, text, message):
    """Prevents a traceback of many lines, and a sweep without the method it is about."""
    path = tmp_path / "not_a_method.py"
    if text is not None:
        path.write_text(text)
    with pytest.raises(SettingsError, match=message):
        load_method_file(path)


def test_a_method_is_added_and_removed_with_its_file(tmp_path):
    """Prevents a second place that knows a method by name: three are
    removed from a copy of the library, and one is added. And a method of cselab from counting as
    the own of a file that is the first to import it, or from being gone after it was refused."""
    copied = shutil.copytree(PACKAGE, tmp_path / "cselab")
    (tmp_path / "data").symlink_to(embedded_dir())
    removed = {"consert", "esimcse", "pcl"}
    for name in removed:
        (copied / "methods" / "baselines" / f"{name}.py").unlink()
    (copied / "methods" / "added.py").write_text(FILE.format(name="added", scale=1))
    (tmp_path / "imports.py").write_text("from cselab.methods.simcse import SimCSE")
    code = """
from cselab.errors import SettingsError
from cselab.methods import load_method_file, method_names
try:
    load_method_file("imports.py")
except SettingsError:
    from cselab.experiments import configure
    print(*(configure(name, "tiny").method.method for name in method_names()))
"""
    options = {"cwd": tmp_path, "capture_output": True, "text": True, "check": False}
    done = subprocess.run([sys.executable, "-c", code], **options)
    assert done.returncode == 0, done.stderr[-2000:]
    assert set(done.stdout.split()) == {*method_names(), "added"} - removed


def test_the_coin_is_fair_and_depends_on_seed_and_step_alone():
    """Prevents a coin that a resumed run, another process or an extra random draw would toss
    differently, and random numbers of a term that would differ so, or be equal at every step."""
    tosses = [StepContext.at(42, step).coin for step in range(4000)]
    torch.manual_seed(1)
    assert tosses == [StepContext.at(42, step).coin for step in range(4000)]
    assert 1850 < sum(tosses) < 2150
    assert tosses[:64] != [StepContext.at(43, step).coin for step in range(64)]
    draws = [
        torch.randn(3, generator=StepContext.at(seed, step).generator()).tolist()
        for seed, step in ((1, 0), (1, 0), (1, 1), (2, 0))
    ]
    assert draws[0] == draws[1]
    assert len(set(map(tuple, draws))) == 3
    pairs = Counter(itertools.pairwise(tosses))
    assert min(pairs.values()) > 850  # nor does one toss say what the next is
