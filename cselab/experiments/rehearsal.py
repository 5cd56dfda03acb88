"""Standing in for a training: what it would leave, without a step of it."""

import inspect
import tempfile
import traceback
from collections.abc import Callable
from pathlib import Path

import torch
from torch import Tensor

from cselab.errors import CselabError, DataError, SettingsError
from cselab.experiments.session import Session
from cselab.methods import Batch, Method, StepContext
from cselab.models import TwinEncoder
from cselab.models.folder import CARD, write_card
from cselab.models.prompts import fill_prompt
from cselab.training.checks import check_trainable

SENTENCES_TRIED = 4
"""Whose vectors try the terms before any training."""
Teacher = Callable[[list[str]], Tensor]


def rehearsed(
    session: Session, name: str, method: Method, starts: list[str], teacher: Teacher | None
) -> Path:
    """What training would leave, of the weights it would start from.

    With it, all that follows can be built before any training.

    Args:
        session: A rehearsal's.
        name: Name of the step.
        method: Built, so that whatever else is wrong with it has been raised.
        starts: Folders that it was built from.
        teacher: Gives sentences their teachers' vectors; None without one.

    Returns:
        A folder with "encoder" and "fit.json".

    Raises:
        DataError: For less text than a batch.
        SettingsError: As `check_trainable`, and for a term that fails.
    """
    node = method.settings
    triplets = method.reads == "triplets"
    found = len(session.triplets if triplets else session.text)
    if found < node.schedule.batch_size:
        raise DataError(
            f"{found} {'triplets' if triplets else 'sentences'} are fewer than one batch of "
            f"{node.schedule.batch_size}; give more, or a smaller batch"
        )
    check_trainable(method, node.schedule, session.device)
    if trips := getattr(node, "round_trips", None):
        session.translator(trips)
    _try_terms(session, method, teacher)
    folder = Path(tempfile.mkdtemp(dir=session.rehearsal, prefix=f"{name}-"))
    encoder, target = method.encoder, folder / "encoder"
    (folder / "fit.json").write_text("{}")
    if getattr(node, "pooler", "") == "fresh" or getattr(encoder, "prompt", ""):
        encoder.save_pretrained(target)  # what was added is in no file yet
        return folder
    target.mkdir()
    if isinstance(encoder, TwinEncoder):
        for tower, start in zip(("tower_i", "tower_ii"), starts, strict=True):
            (target / tower).symlink_to(Path(start).resolve(), target_is_directory=True)
        write_card(target, "twin", cael=encoder.cael, cross_stream=encoder.cross_stream)
    else:
        for path in Path(starts[0]).iterdir():
            if path.name != CARD:
                (target / path.name).symlink_to(path.resolve())
        write_card(target, "sentence", pooling=encoder.pooling, prompt=encoder.prompt)
    return folder


def _try_terms(session: Session, method: Method, teacher: Teacher | None) -> None:
    """Compute the terms of a batch of the schedule's size, of the vectors of a few sentences.

    Raises SettingsError, with the line of the method's file.
    """
    batch = example_batch(session, method, SENTENCES_TRIED)
    if teacher:
        batch["target"] = teacher(session.first_sentences(SENTENCES_TRIED))
    places = torch.arange(method.settings.schedule.batch_size)
    try:
        outputs = method(batch).map(lambda rows: rows[:, places % rows.shape[1]])
        method.compare(outputs, StepContext(seed=0, step=0, coin=True))
    except CselabError:
        raise
    except Exception as error:  # whatever a user's code may raise
        file = inspect.getfile(type(method))
        frames = traceback.extract_tb(error.__traceback__)
        line = next((frame.lineno for frame in reversed(frames) if frame.filename == file), None)
        raise SettingsError(
            f"{Path(file).name}, line {line}: {type(error).__name__}: {error}; correct the method"
        ) from error


def example_batch(session: Session, method: Method, count: int) -> Batch:
    """The first sentences or triplets of the session as a batch of `method`.

    It is on the processor, and has no teachers' vectors.

    Args:
        session: Whose text is read.
        method: Whose tokenizer, views and prompt are used.
        count: Number of sentences or triplets.
    """
    tokenizer = method.encoder.tokenizer
    if method.reads == "triplets":
        triplets = session.triplets[:count]
        sides = zip(*((t.anchor, t.entailed, t.contradicted) for t in triplets), strict=True)
        text = [line for side in sides for line in side]
        if prompt := getattr(method.settings, "prompt", ""):
            text = fill_prompt(prompt, text, tokenizer, method.settings.schedule.max_length)
    else:
        text = session.first_sentences(count) * method.views
    options = {"padding": True, "truncation": True, "max_length": 64, "return_tensors": "pt"}
    return dict(tokenizer(text, padding_side="right", return_token_type_ids=False, **options))
