"""Sentences, steps and small settings for the tests of methods."""

import torch

from cselab.methods import Method, StepContext, method_names, registered

SENTENCES = [
    "a man is playing guitar .",
    "the dog",
    "the big red ball was under the table .",
    "a cat is sleeping",
]
HEADS = StepContext(seed=0, step=0, coin=True)
TAILS = StepContext(seed=0, step=0, coin=False)
TWO_VIEWS = [
    name
    for name, kind in ((name, registered(name)) for name in method_names())
    if issubclass(kind, Method) and kind.views == 2 and len(kind.tower_names) == 1
    if kind.reads == "text"
]
"""Methods of text with one tower and two views."""


def tokenised(tokenizer, sentences) -> dict:
    """The sentences as a batch."""
    options = {"padding": True, "return_tensors": "pt", "return_token_type_ids": False}
    return dict(tokenizer(sentences, **options))


def small_parts(name) -> dict:
    """Settings of a method that fit four sentences and vectors of 32 features."""
    whitened = "whitened" in registered(name).Config().terms
    group = {"terms.whitened.group_size": 2} if whitened else {}
    return {**group, **({"projection": 16} if name == "scd" else {})}


def in_training(name, batch) -> dict:
    """The batch with the ids of its sentences, and a teacher's vectors where the method has one."""
    taught = {"target": torch.randn(len(SENTENCES), 6)} if name == "rankcse" else {}
    return {**batch, "text_hash": torch.arange(len(SENTENCES)), **taught}
