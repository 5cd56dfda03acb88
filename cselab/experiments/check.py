"""Find and open all inputs of a run before its first training step."""

import inspect
import operator
import traceback
from collections.abc import Sequence
from pathlib import Path

import torch

from cselab.data import nli
from cselab.data.corpus import SYNTHETIC
from cselab.data.translation.translators import Bergamot, PreparedTrips
from cselab.errors import CselabError, DataError, SettingsError
from cselab.evaluation.csts import PROMPT
from cselab.experiments.cache import Cache, warn_once
from cselab.experiments.keys import fitted_text
from cselab.experiments.run import RunConfig
from cselab.experiments.run_data import refuse_tests_as_dev
from cselab.experiments.train import teachers_of, trained_towers, trips_of
from cselab.methods import Batch, Method, MethodConfig, StepContext, create, registered
from cselab.methods.nodes import TrainedConfig, WithPooler
from cselab.methods.training_free import Materials
from cselab.models.encode import Encoder
from cselab.models.prompts import fill_prompt
from cselab.training.distributed import rank_and_world
from cselab.training.preconditions import check_trainable

SENTENCES_TRIED = 4
"""Number of sentences whose vectors try the terms before any training."""
SENTENCES_CHANGED = 500
"""Number of sentences on which it is counted how many the translator "lexical" changes."""


def check(runs: Sequence[RunConfig], cache: Cache | None = None) -> None:
    """Find and open all inputs of `runs`, for training and evaluation, before the first step.

    Text, tests and dev pairs are read; the methods are built from start to end (backbones, poolers,
    terms, cross-attention layers, triplets, translators, teachers) without a training step. Prints
    one line that says which data was found, one for a measure that the dev pairs do not allow, and
    one if the translator "lexical", which is made for synthetic text, meets other text.

    Args:
        runs: Runs that share one `data`.
        cache: A cache that has already read the data; None: a new one.

    Raises:
        CselabError: Whatever the run would raise hours later.

    Examples:
        >>> from cselab.experiments import check, configure
        >>> small = {"sentences": 200, "batch_size": 32}
        >>> check([configure("simcse", changes=small)])  # doctest: +NORMALIZE_WHITESPACE
        checked: 200 sentences (embedded (synthetic text)); dev Synthetic,
        tests Synthetic (embedded); simcse can be built
    """
    cache = cache or Cache(runs[0])
    tests, dev, text = cache.data.test_data, cache.data.dev_pairs, cache.data.text
    refuse_tests_as_dev(dev, tests)
    for run in runs:
        try:
            with torch.random.fork_rng(devices=[]):
                _build(cache, run.method)
        except CselabError as error:
            raise type(error)(f"{run.method.method}: {error}") from None
    if rank_and_world()[0]:
        return
    _warn_of_lexical(runs, cache)
    names = ", ".join(dict.fromkeys(run.method.method for run in runs))
    print(
        f"checked: {len(text):,} sentences ({text.source}); dev {dev.task}, "
        f"tests {', '.join(data.task for data in tests)} ({tests[0].source.kind}); "
        f"{names} can be built"
    )
    if not dev.same_meaning.any():
        print(
            f"alignment is left out: no pair of dev {dev.task} is rated above 4 of 5 (or 0.8 of 1)"
        )


def _warn_of_lexical(runs: Sequence[RunConfig], cache: Cache) -> None:
    """Warn, once, with what it changes, if the translator "lexical" reads other than synthetic
    text."""
    trips = [one for run in runs for one in trips_of(run.method) if one.translator == "lexical"]
    if not trips or cache.data.text.source in (SYNTHETIC, nli.SYNTHETIC):
        return
    text = cache.data.sentences(SENTENCES_CHANGED)
    share = sum(map(operator.ne, text, cache.translator(trips[0])(text))) / len(text)
    warn_once(
        f'round trips: translator "lexical" (pivot {trips[0].pivot}) changes {share:.0%} of '
        f"{len(text)} sentences; it is made for synthetic text; choose bergamot (pivot pt), "
        "opus-mt (hub=true) or a .tsv of prepared round trips"
    )


def _build(cache: Cache, node: MethodConfig) -> Encoder:
    """The encoder of a node with the weights that its training would start from."""
    if not isinstance(node, TrainedConfig):
        return _build_untrained(cache, node)
    _check_parts(node)
    for tower in trained_towers(node):
        _build(cache, tower)
    node, folders = _untrained_start(cache, node)
    method = create(node, folders=folders)
    _check_rows(cache, method)
    teachers = [_build(cache, teacher) for teacher in teachers_of(node)]
    batch = example_batch(cache, method, SENTENCES_TRIED)
    if teachers:
        teacher = registered(node.method).targets(teachers)
        batch["target"] = teacher(cache.data.sentences(SENTENCES_TRIED))
    _try_terms(method, batch)
    return method.encoder


def _check_parts(node: MethodConfig) -> None:
    """Raise SettingsError for a part that can be scored and nothing else."""
    for part in node.parts:
        if registered(part.method).scored_only:
            raise SettingsError(
                f"{part.method!r} has no fixed dimensions; it can be scored, but nothing can start "
                "from it or learn from it"
            )


def _build_untrained(cache: Cache, node: MethodConfig) -> Encoder:
    kind = registered(node.method)
    _check_parts(node)
    parts = [_build(cache, part) for part in node.parts]
    if kind.fits:  # fitting takes its time
        kind.check(node, parts, len(fitted_text(cache.data, node)))
        if parts:
            return parts[0]
        if node.pretrained_model:
            kind = registered("untrained")
            node = kind.Config(backbone=node.pretrained_model)
    materials = Materials(parts, cache.data.sentences, cache.data.model_folder, cache.device)
    return kind.encoder(node, materials)


def _untrained_start(cache: Cache, node: TrainedConfig) -> tuple[TrainedConfig, list[str]]:
    """The node and the folders to build it from before its towers are trained: their models'.

    A tower that draws a fresh pooler would save it, so the node may draw one too.
    """
    folders = []
    for tower in trained_towers(node):
        start, (folder, *_) = _untrained_start(cache, tower)
        folders.append(folder)
        fresh = isinstance(start, WithPooler) and start.pooler == "fresh"
        if fresh and isinstance(node, WithPooler):
            node = node.model_copy(update={"pooler": "fresh"})
    if not folders:
        model, setting = node.pretrained_model, node.model_setting
        folders = [str(cache.data.model_folder(model, setting=setting))]
    return node, folders


def _check_rows(cache: Cache, method: Method) -> None:
    """Check the method's training rows: their number, its schedule and its round trips."""
    node = method.settings
    name, rows = {
        "text": ("sentences", lambda data: len(data.text)),
        "triplets": ("triplets", lambda data: len(data.triplets)),
        "csts": ("pairs", lambda data: len(data.csts[0])),
    }[method.reads]
    if (count := rows(cache.data)) < node.schedule.batch_size:
        raise DataError(
            f"{count} {name} are fewer than one batch of "
            f"{node.schedule.batch_size}; give more, or a smaller batch"
        )
    check_trainable(method, node.schedule, cache.device)
    if node.trips:
        translator = cache.translator(node.trips)
        if isinstance(translator, (Bergamot, PreparedTrips)):
            translator.check(cache.data.sentences())


def _try_terms(method: Method, batch: Batch) -> None:
    """Compute the terms of a batch of the schedule's size, of the vectors of a few sentences; an
    error names the line of the method's file."""
    indices = torch.arange(method.settings.schedule.batch_size)
    device = next(method.parameters()).device  # 4-bit weights are on the GPU from the beginning
    batch = {name: tensor.to(device) for name, tensor in batch.items()}
    try:
        outputs = method(batch).map(lambda rows: rows[:, indices.to(rows.device) % rows.shape[1]])
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


def example_batch(cache: Cache, method: Method, count: int) -> Batch:
    """The first rows as a batch on the processor, without teachers' vectors."""
    tokenizer = method.encoder.tokenizer
    ratings = {}
    if method.reads == "csts":
        rows = cache.data.csts[0].subsample(count)
        length = method.settings.schedule.max_length
        sentences, conditions = [*rows.sentences1, *rows.sentences2], rows.conditions * 2
        text = fill_prompt(PROMPT, sentences, tokenizer, length, conditions=conditions)
        ratings["target"] = torch.tensor(rows.scores).float()[:, None]
    elif method.reads == "triplets":
        triplets = cache.data.triplets[:count]
        sides = zip(*((t.anchor, t.entailed, t.contradicted) for t in triplets), strict=True)
        text = [line for side in sides for line in side]
        if prompt := getattr(method.settings, "prompt", ""):
            text = fill_prompt(prompt, text, tokenizer, method.settings.schedule.max_length)
    else:
        text = cache.data.sentences(count) * method.views
    options = {"padding": True, "truncation": True, "max_length": 64, "return_tensors": "pt"}
    batch = tokenizer(text, padding_side="right", return_token_type_ids=False, **options)
    return {**batch, **ratings}
