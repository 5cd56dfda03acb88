"""The concept map."""

import re

from cselab.workbook.chapters import CHAPTERS
from cselab.workbook.course import concept_map


def test_every_notebook_has_a_box_to_the_right_of_what_it_needs():
    """Prevents a box without a link, and two boxes in one place."""
    page = concept_map().data
    boxes = re.findall(r"<a href='(\w+)\.ipynb' style='[^']*left: (\d+)px; top: ([\d.]+)px", page)
    assert [stem for stem, _, _ in boxes] == [chapter.stem for chapter in CHAPTERS.values()]
    places = {stem[:2]: (int(x), float(y)) for stem, x, y in boxes}
    assert len(set(places.values())) == len(boxes)
    assert places["00"][0] < places["02"][0] < places["03"][0] < places["07"][0]
    assert page.count("<path") == len(boxes) - 1  # each but the first needs one other
