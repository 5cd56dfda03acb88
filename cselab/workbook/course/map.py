"""The concept map of the workbook: topics of each notebook, and the notebooks that it needs."""

from pathlib import Path

from IPython.display import HTML

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
CHAPTERS = """
00_start_here | start | start here | pooling, cosine, Spearman |
01_rtt_augmentation | text | round-trip translation | round trip, pivot language | 00
02_twin_pretraining | one tower | twin pretraining | InfoNCE, uniformity, towers | 00
09_imsimcse | one tower | ImSimCSE | off-dropout, DCL, rank | 02
10_bellm | one tower | BeLLM | decoders, causal masks | 02
15_decoder_transfer | one tower | decoders beyond STS | captions, words | 10
11_loss_playground | your own | loss playground | gradients, a loss of your own | 02
03_jtcse_training | two towers | JTCSE training | norm constraint, CAELs | 02
04_loss_ablations | two towers | loss ablations | one term at a time, seeds | 03
05_layernorm_removal | two towers | LayerNorm removal | LayerNorm, lengths | 03
08_ensembles_and_distillation | two towers | ensembles, distillation | sums, students | 03
06_attention_and_norms | looking inside | attention and norms | sinks, energy of [CLS] | 03
07_evaluation | looking inside | evaluation | intervals, seeds, pairs | 03
13_zero_shot_tasks | looking inside | zero-shot tasks | search, ranking, classes | 07
14_languages | looking inside | languages | overlap, fertility, bitext | 07
12_scaling_up | your own | scaling up | real text, a GPU, export | 03
paper_vs_code | looking inside | paper vs. code | papers and released code | 03
"""
"""A line a notebook: stem, group, title, concepts, and the number of the one before it."""


def concept_map() -> HTML:
    """The notebooks as linked boxes, each to the right of the one that it needs.

    Examples:
        >>> from cselab.workbook.course import concept_map
        >>> '02_twin_pretraining.ipynb' in concept_map().data
        True
    """
    chapters = {
        line[:2]: [part.strip() for part in line.split("|")]
        for line in CHAPTERS.strip().splitlines()
    }
    columns: dict[str, int] = {}
    for number, (*_, before) in chapters.items():
        columns[number] = columns[before] + 1 if before else 0
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
    for number, (stem, group, title, concepts, before) in chapters.items():
        left, top = corners[number]
        label = f"{number} · {title}" if number.isdigit() else title
        boxes.append((stem, group, label, concepts, left, top))
        if before:
            x, y = corners[before]
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
