"""The concept map of the workbook: what each notebook teaches, and what it needs."""

import html
from typing import NamedTuple

from IPython.display import HTML

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


class Chapter(NamedTuple):
    """A box of the map.

    Attributes:
        stem: Stem of the notebook's file name.
        group: A key of COLOURS.
        title: Title in the box.
        concepts: Concepts that it teaches, below the title.
        needs: Numbers of the notebooks that come before.
    """

    stem: str
    group: str
    title: str
    concepts: str
    needs: tuple[str, ...] = ()


CHAPTERS = (
    Chapter("00_start_here", "start", "start here", "pooling, cosine, Spearman"),
    Chapter(
        "01_rtt_augmentation",
        "text",
        "round-trip translation",
        "round trip, pivot language",
        ("00",),
    ),
    Chapter(
        "02_twin_pretraining",
        "one tower",
        "twin pretraining",
        "InfoNCE, uniformity, towers",
        ("00",),
    ),
    Chapter("09_imsimcse", "one tower", "ImSimCSE", "off-dropout, DCL, rank", ("02",)),
    Chapter("10_bellm", "one tower", "BeLLM", "decoders, causal masks", ("02",)),
    Chapter(
        "15_decoder_transfer",
        "one tower",
        "decoders beyond STS",
        "captions, words",
        ("10",),
    ),
    Chapter(
        "11_loss_playground",
        "your own",
        "loss playground",
        "gradients, a loss of your own",
        ("02",),
    ),
    Chapter("03_jtcse_training", "two towers", "JTCSE training", "norm constraint, CAELs", ("02",)),
    Chapter(
        "04_loss_ablations", "two towers", "loss ablations", "one term at a time, seeds", ("03",)
    ),
    Chapter(
        "05_layernorm_removal",
        "two towers",
        "LayerNorm removal",
        "LayerNorm, lengths",
        ("03",),
    ),
    Chapter(
        "08_ensembles_and_distillation",
        "two towers",
        "ensembles, distillation",
        "sums, students",
        ("03",),
    ),
    Chapter(
        "06_attention_and_norms",
        "looking inside",
        "attention and norms",
        "sinks, energy of [CLS]",
        ("03",),
    ),
    Chapter("07_evaluation", "looking inside", "evaluation", "intervals, seeds, costs", ("03",)),
    Chapter(
        "13_zero_shot_tasks",
        "looking inside",
        "zero-shot tasks",
        "search, ranking, classes",
        ("07",),
    ),
    Chapter("14_languages", "looking inside", "languages", "overlap, fertility, bitext", ("07",)),
    Chapter("12_scaling_up", "your own", "scaling up", "real text, a GPU, export", ("03",)),
    Chapter(
        "paper_vs_code", "looking inside", "paper vs. code", "papers and released code", ("03",)
    ),
)


def concept_map() -> HTML:
    """The notebooks as linked boxes, each to the right of what it needs.

    Examples:
        >>> from cselab.workbook.course import concept_map
        >>> '02_twin_pretraining.ipynb' in concept_map().data
        True
    """
    columns: dict[str, int] = {}
    for chapter in CHAPTERS:
        needed = [columns[number] for number in chapter.needs]
        columns[chapter.stem[:2]] = max(needed, default=-1) + 1
    tallest = max(list(columns.values()).count(column) for column in columns.values())
    height = tallest * (HEIGHT + GAP)
    places: dict[str, tuple[int, float]] = {}
    for column in range(max(columns.values()) + 1):
        inside = [number for number in columns if columns[number] == column]
        top = (height - len(inside) * (HEIGHT + GAP)) / 2
        for row, number in enumerate(inside):
            places[number] = (column * (WIDTH + BETWEEN), top + row * (HEIGHT + GAP))
    width = (max(columns.values()) + 1) * (WIDTH + BETWEEN) - BETWEEN
    lines = "".join(
        _line(places[number], places[chapter.stem[:2]])
        for chapter in CHAPTERS
        for number in chapter.needs
    )
    boxes = "".join(_box(chapter, places[chapter.stem[:2]]) for chapter in CHAPTERS)
    legend = " &nbsp; ".join(
        f"<span style='color: {colour}'>■</span> {group}" for group, colour in COLOURS.items()
    )
    return HTML(
        "<div style='overflow-x: auto'>"
        f"<div style='position: relative; width: {width}px; height: {height:.0f}px'>"
        f"<svg width='{width}' height='{height:.0f}' fill='none' stroke='#888' "
        f"aria-hidden='true'>{lines}</svg>{boxes}</div>"
        f"<div style='font-size: 13px'>{legend}</div></div>"
    )


def _line(start: tuple[int, float], end: tuple[int, float]) -> str:
    x, y = start[0] + WIDTH, start[1] + HEIGHT / 2
    to_x, to_y = end[0], end[1] + HEIGHT / 2
    middle = (x + to_x) / 2
    return f"<path d='M{x} {y}C{middle} {y} {middle} {to_y} {to_x} {to_y}'/>"


def _box(chapter: Chapter, place: tuple[int, float]) -> str:
    number = f"{chapter.stem[:2]} · " if chapter.stem[0].isdigit() else ""
    return (
        f"<a href='{chapter.stem}.ipynb' style='position: absolute; left: {place[0]}px; "
        f"top: {place[1]}px; width: {WIDTH}px; height: {HEIGHT}px; box-sizing: border-box; "
        "padding: 5px 8px; border: 1px solid #888; border-radius: 6px; border-left: 5px solid "
        f"{COLOURS[chapter.group]}; color: inherit; text-decoration: none; font-size: 12px; "
        f"line-height: 1.35'><b>{number}{html.escape(chapter.title)}</b><br>"
        f"{html.escape(chapter.concepts)}</a>"
    )
