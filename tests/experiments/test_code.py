"""The code in a key: what a cached training has to notice, and what it may ignore."""

import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest
from IPython.core.inputtransformer2 import TransformerManager

from cselab.experiments import code
from cselab.experiments.code import code_of, imported, own_sources
from cselab.methods import load_method_file, method_names, registered

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
        ("cselab.losses.info_nce", "temperature", "tau"),
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
    outside = {"workbook", "study", "cli", "analysis"}
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

FILE = """
import helpers
from cselab.losses import modulus_ratio
from cselab.methods import register
from cselab.methods.simcse import SimCSE


@register("mine")
class Mine(SimCSE):
    def lengths(self, outputs):
        return modulus_ratio(*outputs.sentence).mean() * helpers.HALF
"""


def mine(folder: Path, half: str) -> type:
    """`Mine` in a file of its own, with a file beside it."""
    (folder / "helpers.py").write_text(f"HALF = {half}")
    (folder / "mine.py").write_text(FILE)
    load_method_file(folder / "mine.py")
    return registered("mine")


def test_a_users_files_and_what_they_import_of_the_library_are_the_code(
    tmp_path, edited, own_registry
):
    """Prevents a helper file whose edits are not noticed, and a user's method that is found though
    a loss of the library that it calls has changed; tests of method files edit the file itself."""
    one, other = (own_sources(mine(tmp_path, half)) for half in ("1 / 2", "1 / 3"))
    assert one[0] != other[0]
    assert {"cselab.losses.modulus", "cselab.methods.simcse"} <= one[1]
    kinds = registered("mine"), registered("simcse")
    before = list(map(code_of, kinds))
    edited("cselab.losses.modulus", "return ", "return None or ")
    changed = [old != new for old, new in zip(before, map(code_of, kinds), strict=True)]
    assert changed == [True, False]


def test_a_method_of_the_library_has_no_code_of_a_user():
    """Prevents keys that differ from machine to machine."""
    assert own_sources(registered("simcse")) == ([], set())


CELLS = (
    "from cselab.methods.simcse import SimCSE\nMARGIN = 0.5",
    "%time print(1)",
    "def scaled(x):\n    return x * MARGIN",
    "class Mine(SimCSE):\n    def lengths(self, x):\n        return scaled(x)",
    "other = 1",
)
EDITS = (
    (("0.5", "0.6"), True),
    (("x * M", "x / M"), True),
    (("other = 1", "other = 2"), False),
    (("%time", "%timeit"), False),
    (("return scaled(x)", "return scaled(x)  # why"), False),
)


def test_of_a_notebook_the_cells_that_a_class_needs_are_its_code(monkeypatch):
    """Prevents a class of a cell that finds its old training, or trains anew after any edit."""
    kind = type("Mine", (registered("simcse"),), {"__module__": "__main__"})
    monkeypatch.setitem(sys.modules, "__main__", ModuleType("__main__"))
    transform = TransformerManager().transform_cell

    def sources(*edit: str) -> list[str]:
        cells = [cell.replace(*edit) for cell in CELLS]
        shell = SimpleNamespace(user_ns={"In": cells}, transform_cell=transform)
        monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell))
        return own_sources(kind)[0]

    first = sources("none", "")
    assert "scaled" in "".join(first)
    for edit, changes in EDITS:
        assert (sources(*edit) != first) == changes, edit
