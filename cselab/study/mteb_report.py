"""Evaluate an encoder's folder with mteb, and write its results beside the papers' tables."""

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import mteb
import torch

from cselab.errors import DataError, SettingsError, suggest
from cselab.evaluation.mteb_data import LOCAL_TASKS
from cselab.evaluation.mteb_feed import feed
from cselab.evaluation.mteb_run import kept_results, run_mteb
from cselab.evaluation.mteb_tasks import find_tasks, in_languages
from cselab.fingerprints import folder_hash
from cselab.models import load
from cselab.study.mteb_tables import (
    GROUPS,
    NAMES,
    OFFLINE,
    TABLES,
    beside_table,
    scores,
    tables_with,
)


def evaluate_folder(
    encoder: Path,
    results: Path,
    *,
    benchmark: str | None = None,
    tasks: Sequence[str] = (),
    languages: Sequence[str] = (),
    pooling: str | None = None,
    folder: Path | None = None,
    hub: bool = False,
    name: str | None = None,
    say: Callable[[str], None] = print,
) -> Path:
    """Evaluate the encoder in a folder on a benchmark or on tasks, and write its tables.

    Result files are below `results` in mteb's layout, by the encoder's name and a revision: the
    fingerprint of its folder, and "hub" or "local" for the data. The revision of the data, or its
    fingerprint, is in each file. A run that was killed goes on where it was.

    Args:
        benchmark: As in `benchmark_tasks`; "offline" without tasks.
        tasks, languages: As in `find_tasks`; tasks stand in for a benchmark.
        folder: A data folder.
        hub: Whether mteb loads its own data.
        name: Name of the encoder; by default, that of its folder.
        say: Called with a line per task, and with the tables.

    Returns:
        The folder of the tables, which have all its results, also those of earlier runs.

    Raises:
        SettingsError, ModelError, DataError: Before anything is computed, for what is unknown,
            contradictory, no encoder, or without data; also for a damaged result file.
    """
    if benchmark and tasks:
        raise SettingsError("give a benchmark or tasks, not both")
    if hub and folder:
        raise SettingsError("give the hub or a data folder, not both: with the hub, mteb loads all")
    if name and not re.fullmatch(r"[\w.+-]+", name):
        raise SettingsError(f"name {name!r}: expected letters, digits and . _ + -")
    asked = find_tasks(list(tasks) or benchmark_tasks(benchmark or OFFLINE))
    chosen = in_languages(asked, languages) if languages else asked
    for task in asked:
        if task not in chosen:
            say(f"{task.metadata.name} has none of the languages: left out")
    model = load(encoder, pooling=pooling).to("cuda" if torch.cuda.is_available() else "cpu")
    if not hub:
        chosen, lacking = feed(chosen, folder)
        for line in lacking:
            say(line)
    if not chosen:
        raise DataError("no task is left to evaluate; the lines above say what each needs")
    path = encoder.resolve()
    name = name or (path.parent.name if path.name == "encoder" else path.name)
    parts = [folder_hash(encoder)[:12], *filter(None, [pooling]), "hub" if hub else "local"]
    revision = "-".join(parts)
    if not run_mteb(model, chosen, results, name=name, revision=revision, say=say):
        raise DataError("no task was evaluated; the lines above say why")
    done = kept_results(results, name=name, revision=revision)
    tables = results / "tables" / f"{name}-{revision}"
    tables.mkdir(parents=True, exist_ok=True)
    label = f"{name} ({pooling})" if pooling else name
    scores(done, label).to_csv(tables / "scores.csv", index=False)
    wanted = [benchmark] if benchmark in NAMES else []
    for table in dict.fromkeys([*wanted, *tables_with(done)]):
        beside = beside_table(table, done, label)
        beside.frame.to_csv(tables / f"{table}.csv")
        say(f"\n{beside}")
    return tables


def benchmark_tasks(name: str) -> list[str]:
    """Names of a benchmark's tasks, as `find_tasks` takes them; "task/subset" of a part of a task.

    Args:
        name: Name of TABLES, GROUPS or mteb ("MTEB(eng, v2)"), or "offline".

    Raises:
        SettingsError: With the nearest name, for an unknown benchmark.
    """
    if name == OFFLINE:
        return list(LOCAL_TASKS)
    if name in NAMES:
        tables = [TABLES[part] for part in GROUPS.get(name, (name,))]
        return list(dict.fromkeys(task for table in tables for task in table.tasks.values()))
    known = {benchmark.name: benchmark for benchmark in mteb.get_benchmarks()}
    if name not in known:
        ours = [*NAMES, OFFLINE]
        near = suggest(name, [*ours, *known]).partition("valid:")[0]
        raise SettingsError(
            f"unknown benchmark {name!r}; {near}valid: {', '.join(ours)}, and mteb's, as "
            "'MTEB(eng, v2)'"
        )
    return [name for task in known[name].tasks for name in _parts(task)]


def _parts(task: Any) -> list[str]:
    """A task of a benchmark by its name, or by the subsets that the benchmark has."""
    name, chosen = task.metadata.name, getattr(task, "hf_subsets", None)
    if chosen is None or set(chosen) == set(task.metadata.hf_subsets):
        return [name]
    return [f"{name}/{subset}" for subset in chosen]
