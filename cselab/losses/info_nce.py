"""InfoNCE over in-batch negatives: SimCSE Eq. 4, and NT-Xent as in the released TNCSE and JTCSE."""

from typing import Literal

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor

from cselab.errors import DataError, SettingsError
from cselab.losses.inputs import (
    at_least_float32,
    check_choice,
    check_negatives,
    check_shapes,
    check_temperature,
)


def info_nce(
    a: Float[Tensor, "N d"],
    b: Float[Tensor, "N d"],
    *,
    temperature: float = 0.05,
    layout: Literal["cross", "all"] = "cross",
    ids: Int[Tensor, " N"] | None = None,
    more_negatives: Float[Tensor, "Q d"] | None = None,
) -> Float[Tensor, ""]:
    """InfoNCE: cross-entropy of finding each sentence's other view by cosine / temperature.

    SimCSE Eq. 4, https://arxiv.org/abs/2104.08821; a mean over rows.

    Args:
        b: The other view; row i is the positive of row i of `a`.
        layout: "cross" (SimCSE, ImSimCSE): rows a, columns b, positives on the diagonal, not
            symmetrised; N - 1 negatives. "all" (released TNCSE, JTCSE): the 2N rows of cat([a, b])
            against themselves without the diagonal, positive the other view; 2N - 2 negatives,
            mean over 2N.
        ids: One number per sentence, equal for equal texts; duplicates of a sentence are then not
            among its negatives. None: every other sentence is a negative.
        more_negatives: Further negatives, such as a momentum encoder's queue (ESimCSE);
            layout "cross" only.

    Raises:
        DataError: For wrong shapes, or N < 2.
        SettingsError: For an unknown layout, a temperature not above 0, and `more_negatives` with
            layout "all".

    Examples:
        >>> import torch
        >>> from cselab.losses import info_nce
        >>> sentences = torch.eye(4)
        >>> f"{info_nce(sentences, sentences, temperature=1.0).item():.4f}"  # log(1 + 3/e)
        '0.7437'
    """
    check_choice("layout", layout, ("cross", "all"))
    check_temperature(temperature)
    if layout == "all" and more_negatives is not None:
        raise SettingsError(
            "more_negatives are for layout='cross'; layout='all' has no place for them"
        )
    check_shapes("N d", a=a, b=b)
    check_negatives(len(a))
    if layout == "cross":
        logits = cosines(a, b) / temperature
        positive = torch.arange(len(a), device=a.device)
        logits = without_duplicates(logits, ids, positive)
        if more_negatives is not None:
            logits = torch.cat([logits, cosines(a, more_negatives) / temperature], dim=1)
        return F.cross_entropy(logits, positive)
    # cast first: autocast's cat refuses float16 on CPU
    both = torch.cat([at_least_float32(a), at_least_float32(b)])
    return other_view_cross_entropy(cosines(both, both) / temperature, ids)


def cosines(rows: Float[Tensor, "R d"], columns: Float[Tensor, "C d"]) -> Float[Tensor, "R C"]:
    """Cosine of every row with every column, in float32 or better, also under autocast."""
    rows, columns = (F.normalize(at_least_float32(x), dim=-1) for x in (rows, columns))
    with torch.autocast(rows.device.type, enabled=False):
        return rows @ columns.T


def other_view_cross_entropy(
    logits: Float[Tensor, "B B"], ids: Int[Tensor, " N"] | None
) -> Float[Tensor, ""]:
    """Cross-entropy of finding a sentence's other view among all views but itself (the diagonal).

    Args:
        logits: (2N, 2N); rows and columns are view-major: first view a of all sentences, then b.
        ids: As in `info_nce`.
    """
    n = len(logits) // 2
    itself = torch.eye(2 * n, dtype=torch.bool, device=logits.device)
    positive = torch.arange(2 * n, device=logits.device).roll(n)
    logits = without_duplicates(logits, None if ids is None else ids.repeat(2), positive)
    return F.cross_entropy(logits.masked_fill(itself, -torch.inf), positive)


def without_duplicates(
    logits: Float[Tensor, "B B"], ids: Int[Tensor, " B"] | None, positive: Int[Tensor, " B"]
) -> Float[Tensor, "B B"]:
    """The logits, -inf where a candidate has the row's text but is not its positive.

    Args:
        ids: One number per row and column, equal for equal texts; None changes nothing.
        positive: Each row's column of its positive.

    Raises:
        DataError: Unless there is one id per row.
    """
    if ids is None:
        return logits
    if len(ids) != len(logits):
        raise DataError(f"one id per sentence: expected {len(logits)}, got {len(ids)}")
    same = ids[:, None] == ids[None, :]
    same[torch.arange(len(ids), device=ids.device), positive] = False
    return logits.masked_fill(same, -torch.inf)
