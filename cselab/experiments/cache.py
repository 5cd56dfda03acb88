"""The cache: what runs have computed, on which device and from which data."""

import copy
import functools
import hashlib
import json
import os
import shutil
import sys
import time
import uuid
import warnings
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import torch
from filelock import FileLock, Timeout
from transformers.utils import logging as transformers_logging

from cselab.data.settings import DataConfig, RoundTrips
from cselab.data.translation.round_trip import RoundTrip
from cselab.data.translation.translators import RoundTripper, open_translator
from cselab.errors import SettingsError
from cselab.experiments.code import code_of_modules
from cselab.experiments.environment import environment_stamp
from cselab.experiments.run import RunConfig, Setup
from cselab.experiments.run_data import RunData
from cselab.paths import project_path
from cselab.seals import clear_access, damage, is_whole, seal
from cselab.training.distributed import (
    from_first_process,
    join_process_group,
    rank_and_world,
    wait_for_all,
)
from cselab.training.precision import has_bfloat16, has_native_bfloat16
from cselab.training.watch import Listener


class Cache:
    """Finished steps of runs, each computed once; device, folders and data of the runs.

    `run_dir` is for what one run leaves, `steps_dir` for finished steps, `cache_dir` for tokens and
    translations; `listener` follows each training, such as `widgets.LiveTraining`.

    Args:
        outputs: Folder of a sweep; by default CSELAB_OUTPUTS and CSELAB_RUN_DIR, which the headless
            runner sets, come before the setup's.
    """

    def __init__(self, setup: Setup, outputs: Path | None = None):
        self.data = RunData(setup.data)
        self.device = join_process_group(_device(setup.machine.device))
        self.environment = environment_stamp(self.device)
        self.save_every = setup.machine.save_every
        if outputs:
            self.run_dir = outputs / "runs" / "sweep"
        else:
            outputs = project_path(os.environ.get("CSELAB_OUTPUTS") or setup.machine.outputs)
            run_dir = os.environ.get("CSELAB_RUN_DIR") or outputs / "runs" / "interactive"
            self.run_dir = Path(run_dir)
        self.steps_dir, self.cache_dir = outputs / "steps", outputs / "cache"
        self.listener: Listener | None = None
        self._mentioned: set[Path] = set()
        for folder in (self.run_dir, self.steps_dir, self.cache_dir):
            try:
                folder.mkdir(parents=True, exist_ok=True)
            except OSError as error:
                raise SettingsError(
                    f"outputs: cannot write to {folder} ({error.strerror}); choose another folder"
                ) from None

    def reading(self, config: DataConfig) -> "Cache":
        """The same cache with other data, read anew: its files may have changed."""
        other = copy.copy(self)
        other.data = RunData(config)
        return other

    def step(
        self,
        name: str,
        inputs: dict[str, Any],
        compute: Callable[[Path], None],
        *,
        resumable: bool = False,
    ) -> Path:
        """The folder of a finished step, computed once and shared by all runs.

        The folder appears under its name only when complete; a damaged one is computed again. Of
        several processes (accelerate) all compute a resumable step together; everything else is
        computed by the first, and the others wait.

        Args:
            inputs: JSON-able values that its content depends on.
            compute: Fills an empty folder.
            resumable: Whether the work folder of an interrupted `compute` is kept, and the next
                call finds it as it was left (for trainings and round trips).
        """
        final, first = self._folder(name, inputs), rank_and_world()[0] == 0
        with clear_access(self.steps_dir.parent):
            # at first without the lock, which may be another user's
            reused = from_first_process(first and not damage(final))
            if not reused:
                with FileLock(f"{final}.lock") if first else nullcontext():
                    reused = from_first_process(first and is_whole(final))
                    if not reused:
                        if first or resumable:
                            record = {"name": name, "inputs": inputs}
                            self._compute(final, record, compute, resumable)
                        wait_for_all()
        if reused and first and final not in self._mentioned:
            print(f"{name}: reused {final.name}")
        self._mentioned.add(final)
        return final

    def _compute(
        self, final: Path, record: dict[str, Any], compute: Callable[[Path], None], resumable: bool
    ) -> None:
        """Compute into a hidden folder; the first process gives it its name."""
        started, name = time.perf_counter(), record["name"]
        work = final.name if resumable else f"{name}-{uuid.uuid4().hex[:8]}"
        folder = self.steps_dir / f".{work}"
        folder.mkdir(exist_ok=resumable)  # as the umask says: others may read what is finished
        try:
            compute(folder)
            if rank_and_world()[0] == 0:
                seconds = round(time.perf_counter() - started, 1)
                record |= {"seconds": seconds, "environment": self.environment}
                (folder / "step.json").write_text(json.dumps(record, indent=1, default=str))
                seal(folder)
                os.replace(folder, final)
                print(f"{name}: computed in {seconds:.0f} s, kept as {final.name}")
        finally:
            if not resumable:
                shutil.rmtree(folder, ignore_errors=True)

    def is_computing(self, name: str, inputs: dict[str, Any]) -> bool:
        """Whether another process computes this step at the moment.

        False for the processes of one training, which have to keep one order.
        """
        final = self._folder(name, inputs)
        with clear_access(self.steps_dir.parent):
            if rank_and_world()[1] > 1 or final.is_dir():
                return False
            try:
                with FileLock(f"{final}.lock", timeout=0):
                    return False
            except Timeout:
                return True

    def _folder(self, name: str, inputs: dict[str, Any]) -> Path:
        return self.steps_dir / f"{name}-{digest(inputs)[:12]}"

    def with_fast_precision(self, run: RunConfig) -> RunConfig:
        """The run without bfloat16 where the device does not have it, and one line that says so;
        "auto" becomes what the device has units for."""
        asked = {place: value for place, value, _ in run.walk() if place[-1] == "bf16" and value}
        # the first process decides: all train in one precision
        for place in [place for place, value in asked.items() if value == "auto"]:
            native = from_first_process(has_native_bfloat16(self.device.type))
            run = run.with_value(place, native)
        if True not in asked.values() or from_first_process(has_bfloat16(self.device.type)):
            return run
        warn_once(
            "bf16=True: this machine has no fast bfloat16, so float32 is used; its results may "
            "differ slightly"
        )
        return run.changed({"bf16": False})

    def translator(self, trips: RoundTrips) -> RoundTripper:
        """The translator of round trips, on the device."""
        return open_translator(
            trips.translator,
            trips.pivot,
            hub=self.data.config.hub,
            beams=trips.beams,
            temperature=trips.sampling_temperature,
            device=self.device,
        )

    def round_trip_file(self, trips: RoundTrips) -> Path:
        """One round trip a line, in the order of the text; several processes share the work."""
        translator = self.translator(trips)
        cache = self.cache_dir / "round-trips" / translator.fingerprint

        def compute(folder: Path) -> None:
            trip = RoundTrip(trips.pivot, translator, cache=cache)
            rank, processes = rank_and_world()
            if processes > 1:
                trip.translate_part(self.data.text, rank, processes)
                wait_for_all()
            if rank == 0:
                with (folder / "round-trips.txt").open("w", encoding="utf-8") as file:
                    file.writelines(line + "\n" for line in trip(self.data.text))

        inputs = {
            "translator": translator.fingerprint,
            "text": self.data.text.fingerprint,
            "code": code_of_modules(RoundTrip.__module__),
        }
        name = f"round-trips-{trips.pivot}"
        return self.step(name, inputs, compute, resumable=True) / "round-trips.txt"


def digest(inputs: Any) -> str:
    """Sixteen hex digits of JSON-able values."""
    text = json.dumps(inputs, sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


@functools.cache
def warn_once(message: str) -> None:
    """Print a line on the error stream, once a process."""
    print(message, file=sys.stderr)


def _device(wanted: str) -> torch.device:
    accelerators = {"cuda": torch.cuda, "mps": torch.backends.mps}
    here = [*(name for name, backend in accelerators.items() if backend.is_available()), "cpu"]
    if wanted not in ("auto", *here):
        raise SettingsError(
            f"device {wanted!r} is not on this machine; use device='auto' or one of {here}"
        )
    return torch.device(here[0] if wanted == "auto" else wanted)


def quiet_libraries() -> None:
    """Silence messages of libraries that a reader of a notebook should not scroll past."""
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "true")
    transformers_logging.set_verbosity_error()
    transformers_logging.disable_progress_bar()
    warnings.filterwarnings("ignore", message=".*pin_memory.*")
