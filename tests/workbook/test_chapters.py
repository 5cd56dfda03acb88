"""The order of the chapters, in the one list that map, runs and README share."""

import re

from cselab.paths import project_path
from cselab.workbook.chapters import CHAPTERS, STARTS, starting_order
from cselab.workbook.headless.runner import find_notebooks

NOTEBOOKS = project_path("notebooks")


def test_every_notebook_is_a_chapter_once_and_the_core_is_first():
    """Prevents a notebook that the default run forgets, and an elective before a core chapter."""
    stems = [chapter.stem for chapter in CHAPTERS.values()]
    assert sorted(stems) == sorted(path.stem for path in NOTEBOOKS.glob("*.ipynb"))
    core = [chapter.core for chapter in CHAPTERS.values()]
    assert core == sorted(core, reverse=True)
    numbered = [stem for stem in stems if stem[0].isdigit()]
    assert [path.stem for path in find_notebooks(NOTEBOOKS)] == numbered


def test_notebooks_start_after_those_whose_trainings_they_share():
    """Prevents a chapter that waits, with a core, for the training of one that has not begun."""
    starts = STARTS.split()
    numbers = [number for number in CHAPTERS if number.isdigit()]
    assert sorted(starts) == sorted(numbers)
    core = [CHAPTERS[number].core for number in starts]
    assert core == sorted(core, reverse=True)
    for number in starts:
        before = CHAPTERS[number].before
        if before not in ("", "00", "01"):  # which train nothing
            assert starts.index(before) < starts.index(number)
    assert starting_order(["mine", CHAPTERS["11"].stem, CHAPTERS["02"].stem])[-1] == "mine"


def test_core_and_electives_are_all_numbered_notebooks():
    """Prevents a chapter that neither `make run` nor `make electives` executes."""
    folder = project_path("notebooks")
    named = [*find_notebooks(folder, ["core"]), *find_notebooks(folder, ["electives"])]
    assert named == find_notebooks(folder)


def test_the_readme_lists_the_chapters_in_their_order():
    """Prevents a list of notebooks with a dead link, or one that lacks a chapter."""
    readme = (project_path("README.md")).read_text(encoding="utf-8")
    listed = re.findall(r"^\| \[[^|]*\]\(notebooks/(\w+)\.ipynb\)", readme, re.M)
    assert listed == [chapter.stem for chapter in CHAPTERS.values()]
