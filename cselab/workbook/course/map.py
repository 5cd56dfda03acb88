"""The concept map of the workbook: topics of each chapter, and the chapters that it needs."""

from pathlib import Path

from IPython.display import HTML

from cselab.workbook.chapters import CHAPTERS
from cselab.workbook.templates import templates

WIDTH, HEIGHT, GAP = 184, 60, 8
"""Of a box, and between two, in pixels."""
BETWEEN = 16
"""Pixels between two columns."""
COLOURS = {
    "start": "#666666",
    "text": "#d55e00",
    "one tower": "#0072b2",
    "two towers": "#009e73",
    "looking inside": "#cc79a7",
    "your own": "#a07800",
}


def concept_map() -> HTML:
    """The chapters as linked boxes, each to the right of the one that it needs; those of the core
    have a solid frame, electives a dashed one.

    Examples:
        >>> from cselab.workbook.course import concept_map
        >>> '02_twin_pretraining.ipynb' in concept_map().data
        True
    """
    columns: dict[str, int] = {}
    for number, chapter in CHAPTERS.items():
        columns[number] = columns[chapter.before] + 1 if chapter.before else 0
    inside = [[n for n in columns if columns[n] == column] for column in set(columns.values())]
    height = max(map(len, inside)) * (HEIGHT + GAP)
    corners = {
        number: (
            column * (WIDTH + BETWEEN),
            (height - len(numbers) * (HEIGHT + GAP)) / 2 + row * (HEIGHT + GAP),
        )
        for column, numbers in enumerate(inside)
        for row, number in enumerate(numbers)
    }
    boxes, lines = [], []
    for number, chapter in CHAPTERS.items():
        left, top = corners[number]
        label = f"{number} · {chapter.title}" if number.isdigit() else chapter.title
        boxes.append((chapter, label, left, top))
        if chapter.before:
            x, y = corners[chapter.before]
            lines.append((x + WIDTH, y + HEIGHT / 2, left, top + HEIGHT / 2))
    page = templates(Path(__file__).parent).get_template("map.html.j2")
    return HTML(
        page.render(
            boxes=boxes,
            lines=lines,
            colours=COLOURS,
            size=(WIDTH, HEIGHT),
            width=len(inside) * (WIDTH + BETWEEN) - BETWEEN,
            height=f"{height:.0f}",
            half=BETWEEN / 2,
        )
    )
