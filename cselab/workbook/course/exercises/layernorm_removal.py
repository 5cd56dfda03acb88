"""Checks of notebook 05."""

import copy
from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from cselab.analysis import vector_norms
from cselab.models import SentenceEncoder
from cselab.workbook.course.checks import Wrong, exercise, same_values


@exercise("05.1")
def length_with_a_gain(answer: Callable[[Tensor, Tensor], Tensor]) -> str:
    """The norm of g * x."""
    draw = torch.Generator().manual_seed(0)
    normalised = torch.randn(5, 12, generator=draw)
    normalised = (normalised - normalised.mean(1, keepdim=True)) / normalised.std(
        1, keepdim=True, correction=0
    )
    gain = torch.rand(12, generator=draw) + 0.5
    same_values(
        answer,
        lambda x, g: (g * x).norm(dim=1),
        [(normalised, gain), (normalised, torch.ones(12))],
        {
            "This is the squared length; take its root.": lambda x, g: (g * x).square().sum(1),
            "The gain is squared with the feature: sum over (g x)², not g x².": (
                lambda x, g: (g * x.square()).sum(1).sqrt()
            ),
            "The gain belongs to each feature; this multiplies its mean with the length.": (
                lambda x, g: g.mean() * x.norm(dim=1)
            ),
        },
    )
    return "With equal gains every length is g √d; with others it depends on the sentence."


@exercise("05.2")
def what_lets_lengths_differ(
    answer: str, encoder: SentenceEncoder, sentences: Sequence[str]
) -> str:
    """Gain or bias: whose removal reduces the spread of the lengths more."""
    spread = {}
    for part in ("gain", "bias"):
        tower = copy.deepcopy(encoder.backbone)
        norm = tower.encoder.layer[-1].output.LayerNorm
        with torch.no_grad():
            norm.weight.fill_(1) if part == "gain" else norm.bias.zero_()
        spread[part] = vector_norms(tower, encoder.tokenizer, sentences).cls.std().item()
    right = min(spread, key=spread.__getitem__)
    found = f"standard deviation {spread['gain']:.3f} with g = 1, {spread['bias']:.3f} with b = 0"
    if answer not in spread:
        raise Wrong('Answer "gain" or "bias".')
    if answer != right:
        raise Wrong(f"Neutralise each in turn and compare what is left: {found}.")
    return f"{found}: without the {right} the lengths differ least."
