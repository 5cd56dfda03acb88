"""A lecture's slides: `python docs/slides.py` writes `outputs/docs/slides.html`.

One file that opens without a network. Figures are drawn from the losses and from the recorded
results; numbers in the text are read from them.
"""

import json
from pathlib import Path
from typing import NamedTuple

import plotly.graph_objects as go
import torch

from cselab import evaluation
from cselab.losses import info_nce
from cselab.study import recorded
from cselab.study.papers import SEED_SPREAD
from cselab.workbook import course, plots
from cselab.workbook.headless.page import write_html
from cselab.workbook.templates import templates

FOLDER = Path(__file__).resolve().parent
TARGET = FOLDER.parent / "outputs" / "docs" / "slides.html"
NAMES = {"JTCSE: nce": "towers continued alone"}
"""Recorded labels in words that need no grid."""


class Slide(NamedTuple):
    """A title, a question to the audience, a figure and what it shows."""

    title: str
    question: str
    figure: go.Figure
    answer: str


def slides() -> list[Slide]:
    """The slides of a lecture, in order."""
    return [
        _loss(),
        _temperature(),
        _chart(
            "From the backbone to SimCSE",
            "What does training without labels give a small backbone?",
            "pretrained only (first_last)",
            ["pretrained only (cls)", "SimCSE", "ImSimCSE", "sum of two towers"],
        ),
        Slide(
            "Equal direction, equal length",
            "Two vectors differ in direction and length. What does the modulus term correct?",
            plots.modulus_paths(),
            "The direction. The term is −log t times the modulus ratio; once the cosine t is near "
            "1, −log t is near 0 and switches the ratio off: the lengths stay different.",
        ),
        _chart(
            "Twins against their towers",
            "What does joint training add to the same towers trained as much longer alone?",
            "JTCSE: nce",
            ["sum of two towers", "TNCSE", "JTCSE", "JTCSE, CAELs: *"],
        ),
        _chart(
            "Ablations",
            "Three terms: which subset gains more than longer training, InfoNCE in each tower?",
            "JTCSE: nce",
            ["JTCSE: *", "JTCSE"],
        ),
        _chart(
            "Removing LayerNorms",
            "The norm constraint read off the last state, with fewer and fewer LayerNorms?",
            "JTCSE on h^L, LayerNorms removed: 0",
            ["JTCSE on h^L, *", "JTCSE"],
        ),
        _seeds(),
    ]


def _loss() -> Slide:
    draw = torch.Generator().manual_seed(0)
    a, noise = torch.randn(2, 64, 128, generator=draw)
    shares = [x / 20 for x in range(21)]
    values = [info_nce(a, (1 - x) * a + x * noise).item() for x in shares]
    titles = {"x_title": "share of noise in the second view", "y_title": "InfoNCE, τ = 0.05"}
    return Slide(
        "A sentence has to find its other view",
        "A batch of 64 sentences. What is the loss if the views agree, and if they do not?",
        plots.line_chart({"64 random sentences": (shares, values)}, title="", **titles),
        f"{values[0]:.3f} for equal views, {values[-1]:.1f} for unrelated ones; one vector for all "
        f"sentences would have log 64 = {torch.tensor(64.0).log():.2f}.",
    )


def _temperature() -> Slide:
    cosines = [x / 20 for x in range(-10, 20)]
    figure = plots.negative_shares((0.05, 0.1, 0.5), cosines)
    nearest = {trace.name: trace.y[-1] for trace in figure.data}
    listed = ", ".join(f"{share:.0f} % at {name}" for name, share in nearest.items())
    return Slide(
        "The temperature decides who is pushed",
        f"{len(cosines)} negatives, at cosines from −0.5 to 0.95. Which share of the gradient has "
        "the nearest?",
        figure,
        f"{listed}.",
    )


def _chart(title: str, question: str, against: str, rows: list[str]) -> Slide:
    tables = {
        text: table.rename(index=NAMES) for text, table in recorded.tables(against, rows).items()
    }
    against = NAMES.get(against, against)
    lines, sides = [], {"above": [], "below": []}
    for text, table in tables.items():
        known = table.dropna(subset="difference")
        sides["above"].append(set(known.index[known.low > 0]))
        sides["below"].append(set(known.index[known.high < 0]))
        best = known.difference.idxmax()
        lines.append(f"On {text} the highest is {best}, {course.interval(known.loc[best], 1)}.")
    everywhere = [
        f"{', '.join(sorted(set.intersection(*found))) or 'nothing'} is {side} it on every text"
        for side, found in sides.items()
    ]
    lines.insert(0, f"Against {against}: {'; '.join(everywhere)}.")
    return Slide(title, question, plots.difference_chart(tables, against), "<br>".join(lines))


def _seeds() -> Slide:
    gaps = [0.2 + 0.1 * i for i in range(19)]
    spread = SEED_SPREAD * 2**0.5  # of a difference of two scores
    needed = [evaluation.seeds_needed(gap / spread) for gap in gaps]
    lines = {f"σ = {spread:.2f}, two independent SimCSEs on BERT-base": (gaps, needed)}
    titles = {"x_title": "true difference (points)", "y_title": "seeds"}
    half = needed[gaps.index(min(gaps, key=lambda gap: abs(gap - 0.5)))]
    return Slide(
        "How many seeds does a gap take?",
        "A paired t test should find a difference of half a point four times in five. Fifty public "
        f"seeds of SimCSE have scores with a standard deviation of {SEED_SPREAD}.",
        plots.line_chart(lines, title="", **titles, log_y=True),
        f"{half} seeds. A table of single runs cannot show it.",
    )


def write_slides(target: Path = TARGET) -> None:
    """Draw the slides and write their page."""
    plots.use_theme()
    chosen = slides()
    figures = [slide.figure.update_layout(height=None, autosize=True) for slide in chosen]
    template = templates(FOLDER / "templates").get_template("slides.html.j2")
    target.parent.mkdir(parents=True, exist_ok=True)
    drawn = [json.loads(figure.to_json()) for figure in figures]
    write_html(target, "Sentence embeddings", template.render(slides=chosen), drawn)


if __name__ == "__main__":
    write_slides()
    print(TARGET)
