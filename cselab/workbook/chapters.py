"""The chapters of the workbook: which belong to the core, their order, and what each needs.

The one list for the concept map, the order of a run, its index, and the documentation site. Does
not import torch.
"""

from collections.abc import Iterable
from typing import NamedTuple

CORE = """
00_start_here | start | start here | pooling, cosine, Spearman |
01_rtt_augmentation | text | round trips as views | round trip, pivot language | 00
02_twin_pretraining | one tower | training on views | InfoNCE, uniformity, towers | 01
03_jtcse_training | two towers | JTCSE training | norm constraint, CAELs | 02
04_loss_ablations | two towers | loss ablations | one term at a time, seeds | 03
06_attention_and_norms | looking inside | attention and norms | sinks, energy of [CLS] | 03
07_evaluation | looking inside | evaluation | intervals, seeds, pairs | 03
11_loss_playground | your own | loss playground | gradients, a loss of your own | 02
"""
ELECTIVES = """
05_layernorm_removal | two towers | LayerNorm removal | LayerNorm, lengths | 03
08_ensembles_and_distillation | two towers | ensembles, distillation | sums, students | 03
09_imsimcse | one tower | ImSimCSE | off-dropout, DCL | 02
10_bellm | one tower | BeLLM | decoders, causal masks | 02
13_zero_shot_tasks | looking inside | zero-shot tasks | search, ranking, classes | 07
14_languages | looking inside | languages | overlap, fertility, bitext | 07
15_decoder_transfer | one tower | decoders beyond STS | mask or training, padding | 10
paper_vs_code | looking inside | paper vs. code | papers and released code | 03
"""
"""A line a notebook: stem, group, title, concepts, and the number of the one before it."""
STARTS = "01 02 00 11 03 04 07 06 09 08 10 05 13 15 14"
"""The order in which notebooks start where several run at a time. What trains for others is first,
with short ones beside it: 03 and later ones start from the towers of 02, 06 to 08, 13 and 14 from
the twins of 03. Then the longest of the electives, so that none is left alone at the end."""


class Chapter(NamedTuple):
    """A notebook of the course; `before` is the number of the one that it needs, "" for the first.

    Examples:
        >>> from cselab.workbook.chapters import CHAPTERS
        >>> CHAPTERS["02"].title, CHAPTERS["02"].before, CHAPTERS["02"].core
        ('training on views', '01', True)
    """

    stem: str
    group: str
    title: str
    concepts: str
    before: str
    core: bool


def _read(lines: str, core: bool) -> dict[str, Chapter]:
    rows = (line.split("|") for line in lines.strip().splitlines())
    fields = [name for name in Chapter._fields if name != "core"]
    chapters = [
        Chapter(**dict(zip(fields, map(str.strip, row), strict=True)), core=core) for row in rows
    ]
    return {chapter.stem[:2]: chapter for chapter in chapters}


CHAPTERS = {**_read(CORE, core=True), **_read(ELECTIVES, core=False)}
"""The chapters by the first two characters of their stems, in the order of reading."""
PARTS = {
    "Core chapters": [chapter.stem for chapter in CHAPTERS.values() if chapter.core],
    "Electives": [chapter.stem for chapter in CHAPTERS.values() if not chapter.core],
}
NAMED = {
    "core": PARTS["Core chapters"],
    "electives": [stem for stem in PARTS["Electives"] if stem[0].isdigit()],
}
"""What `cselab run` takes in the place of numbers."""


def by_part(stems: Iterable[str]) -> dict[str, list[str]]:
    """Stems by the part of the course, each part in the order of reading; then the others.

    Examples:
        >>> from cselab.workbook.chapters import by_part
        >>> by_part(["mine", "10_bellm", "00_start_here"])
        {'Core chapters': ['00_start_here'], 'Electives': ['10_bellm'], 'Others': ['mine']}
    """
    stems = list(stems)
    parts = {part: [stem for stem in of if stem in stems] for part, of in PARTS.items()}
    known = {stem for of in PARTS.values() for stem in of}
    parts["Others"] = [stem for stem in stems if stem not in known]
    return {part: of for part, of in parts.items() if of}


def starting_order(stems: Iterable[str]) -> list[str]:
    """Stems in the order of `STARTS`; the others after them, in their own.

    Examples:
        >>> from cselab.workbook.chapters import starting_order
        >>> starting_order(["mine", "00_start_here", "02_twin_pretraining"])
        ['02_twin_pretraining', '00_start_here', 'mine']
    """
    place = {CHAPTERS[number].stem: i for i, number in enumerate(STARTS.split())}
    return sorted(stems, key=lambda stem: place.get(stem, len(place)))
