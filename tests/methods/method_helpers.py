"""What the tests of methods share: sentences and steps."""

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
    for name in method_names()
    if issubclass(registered(name), Method)
    and registered(name).views == 2
    and len(registered(name).tower_names) == 1
]
"""Methods of one tower and two views."""


def tokenised(tokenizer, sentences) -> dict:
    """The sentences as a batch."""
    return dict(
        tokenizer(sentences, padding=True, return_tensors="pt", return_token_type_ids=False)
    )
