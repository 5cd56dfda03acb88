"""`open_lab`: the one set-up call of a notebook. It gives back the lab: settings, device, folders, stages, results."""

import errno
import functools
import hashlib
import json
import os
import random
import shutil
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

from filelock import FileLock

from cselab.environment import PACKAGE, environment_stamp, source_hash
from cselab.errors import CselabError, SettingsError
from cselab.settings import Settings


class Lab:
    """What a notebook works with: `settings`, `device`, `run_dir`, `environment`, `stage(...)`, `record(...)`.

    rehearsal: a folder while `cselab.systems.check` builds what a run will train, so that nothing is trained; else None.
    """

    def __init__(self, notebook: str, settings: Settings):
        import torch

        from cselab.training.distributed import join

        self.notebook = notebook
        self.device = join(_device(settings.device))
        self.settings = _without_slow_bfloat16(settings, self.device.type)
        self.dtype = torch.bfloat16 if self.settings.bf16 else torch.float32
        self.environment = {**environment_stamp(self.device), "precision": str(self.dtype).removeprefix("torch.")}
        outputs = project_path(Path(os.environ.get("CSELAB_OUTPUTS") or settings.outputs))
        self.run_dir = Path(os.environ.get("CSELAB_RUN_DIR") or outputs / "runs" / "interactive")
        self.stages_dir = outputs / "stages"
        self.cache_dir = outputs / "cache"
        self._told: set[Path] = set()
        self.rehearsal: Path | None = None
        for folder in (self.run_dir, self.stages_dir, self.cache_dir):
            try:
                folder.mkdir(parents=True, exist_ok=True)
            except OSError as error:
                raise SettingsError(
                    f"outputs: cannot write to {folder} ({error.strerror}); choose another folder"
                ) from None

    def stage(
        self, name: str, inputs: dict[str, Any], compute: Callable[[Path], None], *, resumable: bool = False
    ) -> Path:
        """The folder of a finished step, computed once and shared by all notebooks.

        `compute(folder)` fills an empty folder; it runs only if no folder with the same `inputs` (any JSON-able
        values) and the same library source exists. The folder appears under its name only when complete.
        resumable: a training: the work folder of an interrupted `compute` is kept, and the next call finds it as it was left. Of
        several processes (accelerate) all compute it together; everything else is computed by the first, and the others wait.
        """
        from cselab.training.distributed import from_first, rank_and_world, wait

        inputs = json.loads(json.dumps({**inputs, "source": source_hash()}, sort_keys=True, default=str))
        key = hashlib.sha256(json.dumps(inputs, sort_keys=True).encode()).hexdigest()[:12]
        final, first = self.stages_dir / f"{name}-{key}", rank_and_world()[0] == 0
        with FileLock(f"{final}.lock") if first else nullcontext():
            if from_first(final.is_dir()):
                if first and final not in self._told:
                    print(f"stage {name}: reused {final.name}")
                self._told.add(final)
                return final
            started = time.perf_counter()
            if first or resumable:
                work = self.stages_dir / f".{final.name}" if resumable else None
                with _work_folder(self.stages_dir, name, work) as folder:
                    compute(folder)
                    seconds = time.perf_counter() - started
                    if first:
                        self._finish(folder, final, {"name": name, "inputs": inputs, "seconds": round(seconds, 1)})
            wait()
        self._told.add(final)
        return final

    def _finish(self, folder: Path, final: Path, stamp: dict[str, Any]) -> None:
        """Give a computed folder its name, with what it was made from."""
        (folder / "stage.json").write_text(json.dumps({**stamp, "environment": self.environment}, indent=1))
        os.replace(folder, final)
        print(f"stage {stamp['name']}: computed in {stamp['seconds']:.0f} s, kept as {final.name}")

    def record(self, rows: Iterable[dict[str, Any]]) -> None:
        """Append result rows (method, task, score, n, ...) with settings hash, seed and environment to results.jsonl; of several
        processes the first does."""
        from cselab.training.distributed import rank_and_world

        if rank_and_world()[0]:
            return
        common = {
            "notebook": self.notebook,
            "seed": self.settings.seed,
            "profile": self.settings.profile,
            "settings": settings_hash(self.settings),
            **self.environment,
        }
        lines = [json.dumps({**common, **row}, default=str) + "\n" for row in rows]
        path = self.run_dir / "results.jsonl"
        with FileLock(f"{path}.lock"), path.open("a") as file:
            file.writelines(lines)

    def with_settings(self, **overrides: Any) -> "Lab":
        """The same lab with some settings changed, for a comparison inside one notebook."""
        lab = Lab(self.notebook, self.settings.changed(**overrides))
        lab._told, lab.rehearsal = self._told, self.rehearsal
        return lab

    def __repr__(self) -> str:
        env = self.environment
        return (
            f"{self.notebook}: profile {self.settings.profile}, seed {self.settings.seed}, {self.device}"
            f" ({env['hardware']}), torch {env['torch']}, transformers {env['transformers']}, results in {self.run_dir}"
        )


def open_lab(notebook: str, **parameters: Any) -> Lab:
    """Set up a notebook: settings from `parameters` (a profile and overrides), seeds, device, plots.

    Raises SettingsError with the nearest valid name for an unknown profile or setting.
    """
    settings = Settings.of(**parameters)
    import numpy
    import torch

    from cselab.views.theme import use_theme

    _quiet()
    random.seed(settings.seed)
    numpy.random.seed(settings.seed)  # noqa: NPY002  scikit-learn and transformers read the legacy state
    torch.manual_seed(settings.seed)
    use_theme()
    return Lab(notebook, settings)


def project_path(path: str | Path) -> Path:
    """Relative folders are relative to the project, also for a notebook opened in `notebooks/`."""
    root = PACKAGE.parent if (PACKAGE.parent / "pyproject.toml").is_file() else Path.cwd()
    return (root / Path(path).expanduser()).resolve()


def settings_hash(settings: Settings) -> str:
    """Twelve hex digits that change when anything that can change a result does (not the folders)."""
    text = settings.model_dump_json(exclude={"outputs", "data_dir"})
    return hashlib.sha256(text.encode()).hexdigest()[:12]


@contextmanager
def _work_folder(parent: Path, name: str, kept: Path | None = None) -> Iterator[Path]:
    """A folder beside its final place: a new one, gone whatever happens, or `kept`. A full disk is said in one line."""
    folder = kept or Path(tempfile.mkdtemp(dir=parent, prefix=f".{name}-"))
    try:
        folder.mkdir(exist_ok=True)
        yield folder
    except OSError as error:
        if error.errno != errno.ENOSPC:
            raise
        raise CselabError(f"no space left on the disk of {parent}: free some, or set `outputs` elsewhere") from None
    finally:
        if not kept:
            shutil.rmtree(folder, ignore_errors=True)


def _without_slow_bfloat16(settings: Settings, device: str) -> Settings:
    """The settings without bfloat16 where the device does not have it, and one line that says so."""
    from cselab.training.distributed import from_first
    from cselab.training.precision import has_bfloat16

    if not settings.bf16 or from_first(has_bfloat16(device)):  # all processes train alike
        return settings
    _warn_once("bf16=True: this machine has no fast bfloat16, so float32 is used; its results may differ slightly")
    return settings.changed(bf16=False)


@functools.cache
def _warn_once(message: str) -> None:
    print(message, file=sys.stderr)


def _device(wanted: str):
    import torch

    found = {"cpu": True, "cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available()}
    if wanted == "auto":
        wanted = next(name for name in ("cuda", "mps", "cpu") if found[name])
    if not found[wanted]:
        raise SettingsError(
            f"device {wanted!r} is not on this machine; use device='auto' or one of {[d for d in found if found[d]]}"
        )
    return torch.device(wanted)


def _quiet() -> None:
    """Library chatter that a reader of a notebook should not have to scroll past."""
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "true")
    from transformers.utils import logging as transformers_logging

    transformers_logging.set_verbosity_error()
    transformers_logging.disable_progress_bar()
    warnings.filterwarnings("ignore", message=".*pin_memory.*")
