"""Preconditions of a training, checked before anything is prepared for it."""

import datasets
import numpy as np
import torch

from cselab.data.augment import most_added
from cselab.errors import SettingsError
from cselab.methods import Method, Schedule
from cselab.models import longest_input
from cselab.models.texts import warn_of_lost_text
from cselab.training.distributed import rank_and_world


def check_trainable(method: Method, schedule: Schedule, device: torch.device) -> None:
    """Check that a method can be trained by a schedule on a device.

    Raises:
        SettingsError: For a batch norm whose batch would be computed in parts (`schedule.chunk`,
            several processes), for `chunk` on mps, and for more tokens than the backbone reads.
    """
    in_parts = schedule.chunk or rank_and_world()[1] > 1
    if in_parts and any(isinstance(module, torch.nn.BatchNorm1d) for module in method.modules()):
        raise SettingsError(
            f"{type(method).__name__} has a batch norm, which needs whole batches; set chunk=0 and "
            "use one process"
        )
    backbone = method.encoder.backbones[0]
    if getattr(backbone, "is_quantized", False) and device.type != "cuda":
        raise SettingsError(f"four_bit needs CUDA, the device is {device.type}; set four_bit=False")
    if schedule.chunk and device.type == "mps":
        raise SettingsError("chunk restores the random state of cpu and cuda; set chunk=0 on mps")
    length, longest = schedule.max_length, longest_input(backbone)
    added = {"the prompt": _prompt_tokens(method), "augmented views": _view_tokens(method, length)}
    if length + sum(added.values()) > longest:
        more = "".join(f" and {count} tokens of {name}" for name, count in added.items() if count)
        raise SettingsError(
            f"max_length={length}{more}: the backbone reads at most {longest} tokens; give less"
        )


def warn_of_lost_rows(method: Method, corpus: datasets.Dataset, schedule: Schedule) -> None:
    """Warn, once, if much of the training text is unknown to the tokenizer, or cut off."""
    tokenizer = getattr(method.encoder, "tokenizer", None)
    if tokenizer is None or rank_and_world()[0]:
        return
    columns = [name for name in corpus.column_names if name.startswith("input_ids")]
    chunks = [chunk for name in columns for chunk in corpus.data.column(name).chunks]
    ids = np.concatenate([chunk.flatten().to_numpy(zero_copy_only=False) for chunk in chunks])
    lengths = np.concatenate([chunk.value_lengths().to_numpy() for chunk in chunks])
    warn_of_lost_text((ids, lengths), tokenizer, schedule.max_length, "the training text")


def _prompt_tokens(method: Method) -> int:
    """Tokens that a method puts around its rows; other rows have their prompt already."""
    if method.reads != "text" or not getattr(method.encoder, "prompt", ""):
        return 0
    parts = method.encoder.prompt.split("{sentence}")
    tokenizer = method.encoder.tokenizer
    return sum(len(tokenizer(part, add_special_tokens=False)["input_ids"]) for part in parts)


def _view_tokens(method: Method, max_length: int) -> int:
    """Largest number of tokens that a view adds to a text of `max_length` tokens."""
    words = max_length - method.encoder.tokenizer.num_special_tokens_to_add()
    views = (*method.augment, *method.own_views)
    return max((most_added(name, words, method.tokens) for name in views), default=0)
