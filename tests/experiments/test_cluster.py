"""Sweeps as processes of their own: workers and schedulers killed, a second process on the same
scheduler."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest
import torch

from cselab.experiments.cluster import connected
from cselab.experiments.store import Store
from cselab.machine import MALLOC

pytestmark = pytest.mark.slow
SHORT = {"steps": 24, "eval_every": 4, "batch_size": 16}
SETTINGS = {"caels": 2, "sentences": 400, "dev_pairs": 20, "synthetic_pairs": 40, **SHORT}
SETTINGS |= {f"towers.{name}": value for name, value in SHORT.items()}
ALL = [(label, seed) for label in ("simcse", "jtcse") for seed in (1, 2)]


def environment() -> dict[str, str]:
    """Variables without a user's data and threads, for clients and workers alike."""
    return {k: v for k, v in os.environ.items() if not k.startswith(("CSELAB", "OMP"))}


def sweep(
    folder: Path, backbone: str, *more: str, seeds: str = "1-2", methods=("simcse", "jtcse")
) -> subprocess.Popen:
    words = [f"-p {name}={value}" for name, value in {**SETTINGS, "backbone": backbone}.items()]
    words += [f"-m {method}" for method in methods]
    words += ["--seeds", seeds, "--store", f"{folder}/s.sqlite", "--outputs", f"{folder}", *more]
    command = [sys.executable, "-m", "cselab", "sweep", *" ".join(words).split()]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    return subprocess.Popen(command, cwd=folder, env=environment(), **pipes)


def until(what, process: subprocess.Popen, seconds: float = 240):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if found := what():
            return found
        if process.poll() is not None:
            pytest.fail("it ended before:\n" + "\n".join(process.communicate()))
        time.sleep(0.05)
    process.kill()
    pytest.fail("it never came:\n" + "\n".join(process.communicate()))


def ended(process: subprocess.Popen) -> str:
    out, errors = process.communicate(timeout=400)
    assert process.returncode == 0, (out + errors)[-3000:]
    return out


def rows(folder: Path):
    return Store(folder / "s.sqlite").scores()


def runs(folder: Path) -> list[tuple[str, int]]:
    found = Store(folder / "s.sqlite").runs()
    assert (found.state == "done").all()
    return sorted(zip(found.label, found.seed, strict=True))


def workers(process: subprocess.Popen) -> list[psutil.Process]:
    """The living worker processes of a sweep."""
    found = []
    for child in psutil.Process(process.pid).children():
        with contextlib.suppress(psutil.NoSuchProcess):  # killed before, and not yet waited for
            if "spawn_main" in " ".join(child.cmdline()):
                found.append(child)
    return found


def test_a_killed_worker_costs_no_run_and_doubles_none(tmp_path, small_backbone):
    """Prevents lost and repeated rows, a run that starts again from nothing, and one that resumes
    to other numbers."""
    for name in ("calm", "killed"):
        (tmp_path / name).mkdir()
    assert "4 of 4 runs" in ended(sweep(tmp_path / "calm", small_backbone, "--workers", "2"))
    process = sweep(tmp_path / "killed", small_backbone, "--workers", "2")
    steps = tmp_path / "killed" / "steps"
    for _ in range(2):
        seen = set(steps.glob(".*/checkpoints/checkpoint-*"))
        until(lambda seen=seen: set(steps.glob(".*/checkpoints/checkpoint-*")) - seen, process)
        busiest = max(workers(process), key=lambda child: child.cpu_times().user)
        busiest.send_signal(signal.SIGKILL)
    assert "4 of 4 runs" in ended(process)
    assert runs(tmp_path / "killed") == sorted(ALL)
    columns = ["key", "measure", "task"]
    calm, killed = (
        rows(tmp_path / name).set_index(columns).value.sort_index() for name in ("calm", "killed")
    )
    assert not killed.index.duplicated().any()
    assert calm.to_dict() == killed.to_dict()  # to the last digit


class Cluster:
    """A dask scheduler, which a file finds, and two workers, each a process of its own."""

    def __init__(self, folder: Path):
        self.file = folder / "scheduler.json"
        self.start()

    def start(self) -> None:
        self.file.unlink(missing_ok=True)
        log = self.file.with_suffix(".log").open("a")
        variables = {**environment(), "OMP_NUM_THREADS": "1"}
        options = {"stdout": log, "stderr": log, "env": variables, "start_new_session": True}

        def start(program: str) -> subprocess.Popen:
            command = [sys.executable, "-m", *program.split()]
            return subprocess.Popen(command, **options)

        self.scheduler = start(
            "distributed.cli.dask_scheduler --port 0 --dashboard-address :0 "
            f"--scheduler-file {self.file}"
        )
        text = until(lambda: self.file.exists() and self.file.read_text(), self.scheduler)
        self.address = json.loads(text)["address"]
        self.workers = start(
            f"distributed.cli.dask_worker {self.address} --nworkers 2 --nthreads 1"
        )

    def stop(self) -> None:
        for process in (self.scheduler, self.workers):
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


@pytest.fixture
def cluster(tmp_path):
    cluster = Cluster(tmp_path)
    yield cluster
    cluster.stop()


def test_two_sweeps_share_a_scheduler_and_a_lost_one_costs_no_finished_run(
    tmp_path, small_backbone, cluster
):
    """Prevents a second sweep that does the first one's runs again, or is refused; and a store
    that a lost scheduler empties."""

    def on_cluster(**options) -> subprocess.Popen:
        return sweep(tmp_path, small_backbone, "--scheduler", cluster.address, **options)

    one, two = on_cluster(), on_cluster(methods=("simcse", "sum"))
    assert "4 of 4 runs" in ended(one)
    assert "4 of 4 runs" in ended(two)
    assert runs(tmp_path) == sorted([*ALL, *(("sum", seed) for seed in (1, 2))])
    assert Store(tmp_path / "s.sqlite").runs().attempts.max() == 1

    before = rows(tmp_path)
    three = on_cluster(seeds="1-5", methods=("simcse",))
    until(lambda: len(runs(tmp_path)) > 6, three)
    cluster.scheduler.kill()
    out, errors = three.communicate(timeout=200)
    assert three.returncode == 2, out + errors
    (line,) = (line for line in errors.splitlines() if line.startswith("cselab: scheduler "))
    assert "the same command goes on" in line
    kept = rows(tmp_path)
    assert kept.merge(before).shape[0] == before.shape[0]
    cluster.stop()
    cluster.start()
    assert "5 of 5 runs, " in ended(on_cluster(seeds="1-5", methods=("simcse",)))
    assert len(runs(tmp_path)) == 9
    assert not rows(tmp_path).duplicated(["key", "measure", "task"]).any()


def _environment_of_a_process() -> dict[str, str]:
    entries = Path("/proc/self/environ").read_text().split("\0")
    threads = {"threads": str(torch.get_num_threads())}
    return dict(entry.partition("=")[::2] for entry in entries) | threads


@pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="reads /proc")
def test_workers_keep_their_memory_and_their_threads(monkeypatch):
    """Prevents dask's own malloc settings, with which workers train a third slower, and a shell's
    OMP_NUM_THREADS over --threads."""
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    with connected(None, 1, 1) as client:
        (found,) = client.run(_environment_of_a_process).values()
    assert found["threads"] == "1"
    assert found.items() >= MALLOC.items()
