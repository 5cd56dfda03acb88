"""Checks that read a notebook's encoders or scores, or that ask for names or for two numbers."""

import copy
from collections.abc import Callable, Mapping, Sequence

import torch

from cselab.analysis import trace, vector_norms
from cselab.evaluation.significance import compare_pairs
from cselab.evaluation.sts import TaskScore
from cselab.models import SentenceEncoder
from cselab.models.encode import token_batches
from cselab.workbook.course.checks import Number, Wrong

SENTENCE = "This is an example sentence for visualizing attention scores."
"""Of notebook 06."""


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


def looks_back(answer: tuple[int, int], encoder: SentenceEncoder) -> str:
    """The layer and head, from 1, with the largest attention to the previous token."""
    (batch,) = token_batches(encoder.tokenizer, [SENTENCE], encoder.backbone)
    attention = trace(encoder.backbone, **batch).attention[:, 0]
    share = attention.diagonal(-1, dim1=2, dim2=3).mean(-1)
    right = tuple(1 + int(i) for i in torch.unravel_index(share.argmax(), share.shape))
    if tuple(answer) == right:
        return f"It gives {share.max():.0%} of its attention to the token before, whatever it is."
    if tuple(1 + i for i in answer) == right:
        raise Wrong("Count layers and heads from 1.")
    most = attention.diagonal(1, dim1=2, dim2=3).mean(-1)
    if tuple(answer) == tuple(1 + int(i) for i in torch.unravel_index(most.argmax(), most.shape)):
        raise Wrong("This one looks at the next token; the previous one is below the diagonal.")
    raise Wrong("Average the entries one below the diagonal, for each layer and head.")


def overlap_and_differ(answer: int, scores: Mapping[str, TaskScore], against: str) -> str:
    """The number of encoders whose interval overlaps that of `against`, and whose paired
    difference from it is distinguishable from zero."""
    base = scores[against]
    overlapping = [
        name
        for name, score in scores.items()
        if name != against and score.low <= base.high and base.low <= score.high
    ]
    found = {name: compare_pairs(scores[name], base) for name in overlapping}
    differ = [name for name, one in found.items() if one.low > 0 or one.high < 0]
    shows = (
        f"{', '.join(differ) or 'None'}. Overlapping intervals do not say that there is no "
        "difference; the paired interval does."
    )
    mistakes = {"This is the number of intervals that overlap.": len(overlapping)}
    return Number(len(differ), shows, mistakes=mistakes)(answer)


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
    "06.3": looks_back,
    "07.3": overlap_and_differ,
    "13.3": average_precision_of_chance,
}
