"""Checks that read a notebook's encoders or scores, or that ask for names or for two numbers."""

import copy
import itertools
from collections.abc import Callable, Mapping, Sequence

import torch

from cselab.analysis import vector_norms
from cselab.evaluation.sts import TaskScore
from cselab.models import SentenceEncoder
from cselab.workbook.course.checks import Number, Wrong


def reached_by_a_cael(answer: set[str]) -> str:
    """{"value"}."""
    answer = {answer} if isinstance(answer, str) else set(answer)
    if answer - {"query", "key", "value", "output"}:
        raise Wrong('Answer with a set of "query", "key", "value" and "output".')
    if answer & {"query", "key"}:
        raise Wrong("Tower I asks with its own queries, and its own keys answer.")
    if "output" in answer:
        raise Wrong("What follows the attention is tower I's: `layer.output`, not `other.output`.")
    if not answer:
        raise Wrong("Then tower II would not be read. What of `other` does the code above use?")
    return "Only the values join the towers (and all that lies below them); no weight is added."


def gain_or_bias(answer: str, encoder: SentenceEncoder, sentences: Sequence[str]) -> str:
    """The part of the last LayerNorm whose removal reduces the spread of the lengths more."""
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


def intervals_apart(answer: int, scores: Mapping[str, TaskScore]) -> str:
    """The number of pairs of methods whose intervals do not overlap."""
    pairs = list(itertools.combinations(scores, 2))
    apart = [
        f"{a} / {b}"
        for a, b in pairs
        if scores[a].high < scores[b].low or scores[b].high < scores[a].low
    ]
    shows = (
        f"{', '.join(apart) or 'None'}. Two models on the same pairs are compared pair by pair, "
        "which is much narrower; and over seeds, two methods are another question."
    )
    overlapping = {"This is the number of those that do overlap.": len(pairs) - len(apart)}
    return Number(len(apart), shows, mistakes=overlapping)(answer)


def average_precision_of_chance(answer: tuple[float, float]) -> str:
    """The shares of positive pairs, in percent."""
    even, uneven = answer
    if abs(even - uneven) < 0.5:
        raise Wrong("What is the precision of a random ranking if few of the pairs are entailed?")
    Number(50, "", within=1)(even)
    shows = "Chance is the share of positives: it differs from task to task, unlike AUC's 50 %."
    contradicted = {"95 % of the pairs are contradicted, not entailed.": 95}
    return Number(5, shows, within=1, mistakes=contradicted)(uneven)


MEASURED: dict[str, Callable[..., str]] = {
    "03.3": reached_by_a_cael,
    "05.2": gain_or_bias,
    "07.3": intervals_apart,
    "13.3": average_precision_of_chance,
}
