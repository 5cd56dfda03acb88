"""A tower's trace of a sentence, as the attention inspector draws it."""

import base64
from typing import Any, NamedTuple

import torch
from torch import Tensor

from cselab.analysis import Trace, token_classes, trace
from cselab.workbook.analysis import token_labels
from cselab.workbook.widgets.streams import Stream

SHOWN = {
    "weights": "attention weights",
    "lengths": "weight × length of the value",
    "other lengths": "weight × length of the other tower's value",
}
"""Quantities that the attention maps can show."""
LONGEST = 64  # tokens of a sentence; more are cut


class Reading(NamedTuple):
    """A tower's trace of a sentence of L tokens, and the trace of the other tower of its twin."""

    tokens: list[str]
    classes: Tensor  # indices into `cselab.analysis.CLASSES`, (L,)
    trace: Trace
    other_trace: Trace | None

    def packed(self) -> dict[str, Any]:
        """Pack what the browser draws as base64 of float16: attention (n, h, L, L), and lengths of
        the values (n, h, L), of the context and of the states (n, L)."""
        own, other = self.trace, self.other_trace
        lengths = {"values": own.values, "context": own.context, "states": own.states[1:]}
        lengths |= {} if other is None else {"others": other.values}
        return {
            "tokens": self.tokens,
            "classes": self.classes.tolist(),
            "attention": _half(own.attention[:, 0]),
            **{name: _half(rows[:, 0].norm(dim=-1)) for name, rows in lengths.items()},
        }


def read_sentence(stream: Stream, sentence: str) -> Reading:
    """Trace a sentence through the tower of `stream`, and through the other one of its twin."""
    cut = dict(truncation=True, max_length=LONGEST, return_token_type_ids=False)
    batch = stream.tokenizer([sentence], return_tensors="pt", **cut).to(stream.tower.device)
    ids, mask = batch["input_ids"], batch["attention_mask"]
    towers = (tower for tower in (stream.tower, stream.other) if tower is not None)
    traces = [Trace(*(x.float().cpu() for x in trace(tower, ids, mask))) for tower in towers]
    tokens = token_labels(stream.tokenizer, ids[0].tolist())
    classes = token_classes(stream.tokenizer, ids[0].cpu(), mask[0].cpu())
    return Reading(tokens, classes, traces[0], traces[1] if len(traces) > 1 else None)


def _half(x: Tensor) -> str:
    return base64.b64encode(x.to(torch.float16).contiguous().numpy().tobytes()).decode()
