"""Which changes of meaning an encoder notices: couples of a paraphrase and a changed copy."""

from collections.abc import Callable
from dataclasses import dataclass, field
from statistics import NormalDist
from typing import Any

import numpy as np

from cselab.data.synthetic import couples
from cselab.evaluation.sts import unit_rows


@dataclass(frozen=True)
class RankedCouples:
    """Couples of one change.

    Attributes:
        share: Per cent of the couples whose paraphrase is nearer to the sentence than its changed
            copy is; a tie counts half. Who cannot see the change has 50.
        low: Lower end of Wilson's 95 % interval of `share`.
        right: 1, 0.5 or 0 a couple, (n,), for a paired comparison of two encoders.
    """

    share: float
    low: float
    high: float
    right: np.ndarray = field(repr=False)


def rank_couples(encode: Callable[[list[str]], Any]) -> dict[str, RankedCouples]:
    """Share of couples ranked rightly, by change of meaning (`cselab.data.synthetic.couples`).

    A correlation within the pairs of one change would not measure this: all of them have the
    change, so that it grades what else differs.

    Args:
        encode: List of n strings -> (n, d) array or tensor.

    Raises:
        DataError: If `encode` returns another number of rows or values that are not finite.

    Examples:
        >>> from cselab.evaluation import rank_couples
        >>> by_length = lambda sentences: [[len(sentence), 10.0] for sentence in sentences]
        >>> round(rank_couples(by_length)["role_swap"].share)
        43
    """
    texts = list(dict.fromkeys(text for couple in couples() for text in couple[:3]))
    unit = dict(zip(texts, unit_rows(encode(texts), len(texts)), strict=True))
    right: dict[str, list[float]] = {}
    for couple in couples():
        sentence, paraphrase, changed = (unit[text] for text in couple[:3])
        above = round(float(sentence @ paraphrase - sentence @ changed), 12)
        right.setdefault(couple.change, []).append((np.sign(above) + 1) / 2)
    return {change: _ranked(np.array(values)) for change, values in right.items()}


def _ranked(right: np.ndarray) -> RankedCouples:
    n, share, z = len(right), right.mean(), NormalDist().inv_cdf(0.975)
    centre = (share + z**2 / (2 * n)) / (1 + z**2 / n)
    half = z / (1 + z**2 / n) * np.sqrt(share * (1 - share) / n + z**2 / (4 * n**2))
    share, low, high = (100 * float(x) for x in (share, centre - half, centre + half))
    return RankedCouples(share, low, high, right)
