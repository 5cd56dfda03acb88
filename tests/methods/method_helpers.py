"""What the tests of methods share: sentences, steps, and a method on saved towers."""

from cselab.methods import Method, StepContext, create, method_names, registered

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


def build(name: str, folders, **changes) -> Method:
    """The method in evaluation mode, from as many of the folders as it has towers.

    changes: settings by dotted path; twins have 2 CAELs, for the towers of the tests have 4 layers.
    """
    kind = registered(name)
    config = kind.Config()
    usual = {path: value for path, value in {"caels": 2}.items() if config.takes(path)}
    config = config.changed({**usual, **changes})
    return create(config, folders=folders[: len(kind.tower_names)]).eval()


def tokenised(tokenizer, sentences) -> dict:
    """The sentences as a batch."""
    return dict(
        tokenizer(sentences, padding=True, return_tensors="pt", return_token_type_ids=False)
    )
