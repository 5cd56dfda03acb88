"""Sweeps as processes of their own: workers and schedulers killed, a second process on the same
scheduler, a researcher's own method."""

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

from cselab import cli
from cselab.experiments.cluster import connected
from cselab.experiments.store import Store
from cselab.machine import MALLOC

pytestmark = pytest.mark.slow
SHORT = {"steps": 24, "eval_every": 4, "batch_size": 16}
SETTINGS = {"caels": 2, "sentences": 400, "dev_pairs": 20, "synthetic_pairs": 40, **SHORT}
SETTINGS |= {f"towers.{name}": value for name, value in SHORT.items()}
CHECKPOINTS = "steps/.*/checkpoints/checkpoint-*"
ALL = [(label, seed) for label in ("simcse", "jtcse") for seed in (1, 2)]


def environment() -> dict[str, str]:
    """Variables without a user's data and threads, for clients and workers alike."""
    return {k: v for k, v in os.environ.items() if not k.startswith(("CSELAB", "OMP"))}


def command(folder: Path, backbone: str, *more: str, seeds="1-2", methods=("simcse", "jtcse")):
    words = [f"-p {name}={value}" for name, value in {**SETTINGS, "backbone": backbone}.items()]
    words += [f"-m {method}" for method in methods]
    words += ["--seeds", seeds, "--store", f"{folder}/s.sqlite", "--outputs", f"{folder}", *more]
    return ["sweep", *" ".join(words).split()]


def sweep(folder: Path, *arguments, **options) -> subprocess.Popen:
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    words = [sys.executable, "-m", "cselab", *command(folder, *arguments, **options)]
    return subprocess.Popen(words, cwd=folder, env=environment(), **pipes)


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
    """Scores by key, measure and task."""
    scores = Store(folder / "s.sqlite").scores().set_index(["key", "measure", "task"])
    assert not scores.index.duplicated().any()
    return scores.sort_index()


def runs(folder: Path) -> list[tuple[str, int]]:
    found = Store(folder / "s.sqlite").runs()
    assert (found.state == "done").all()
    return sorted(zip(found.label, found.seed, strict=True))


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
            return subprocess.Popen([sys.executable, "-m", *program.split()], **options)

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


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    cluster = Cluster(tmp_path_factory.mktemp("cluster"))
    yield cluster
    cluster.stop()


@pytest.fixture(scope="module")
def shared(tmp_path_factory, small_backbone, cluster) -> Path:
    """The folder of two sweeps that ran at the same time on one scheduler."""
    folder, where = tmp_path_factory.mktemp("shared"), ("--scheduler", cluster.address)
    both = [sweep(folder, small_backbone, *where, methods=["simcse", m]) for m in ("jtcse", "sum")]
    assert all("4 of 4 runs" in ended(process) for process in both)
    return folder


def test_two_sweeps_share_a_scheduler(shared):
    """Prevents a second sweep that does the first one's runs again, or is refused."""
    assert runs(shared) == sorted([*ALL, *(("sum", seed) for seed in (1, 2))])
    assert Store(shared / "s.sqlite").runs().attempts.max() == 1


def test_a_killed_worker_costs_no_run_and_doubles_none(tmp_path, small_backbone, shared):
    """Prevents lost and repeated rows, a run that starts again from nothing, and one that resumes
    to other numbers than on another cluster without a kill."""
    process = sweep(tmp_path, small_backbone, "--workers", "2")
    for _ in range(2):
        seen = set(tmp_path.glob(CHECKPOINTS))
        until(lambda seen=seen: set(tmp_path.glob(CHECKPOINTS)) - seen, process)
        workers = {}
        for child in psutil.Process(process.pid).children():
            with contextlib.suppress(psutil.NoSuchProcess):  # killed before, not yet waited for
                if "spawn_main" in " ".join(child.cmdline()):
                    workers[child.cpu_times().user] = child
        workers[max(workers)].send_signal(signal.SIGKILL)
    assert "4 of 4 runs" in ended(process)
    assert runs(tmp_path) == sorted(ALL)
    calm, killed = (rows(folder).query("label != 'sum'").value for folder in (shared, tmp_path))
    assert calm.to_dict() == killed.to_dict()  # to the last digit


METHOD = """
from half import HALF
from cselab.evaluation import alignment, uniformity
from cselab.methods import Terms, register, term
from cselab.methods.simcse import SimCSE


@register("mine")
class AlignUniform(SimCSE):
    class Config(SimCSE.Config):
        terms: Terms = {"align": 10, "uniform": 1}

    @term
    def align(self, outputs, step):
        return alignment(*outputs.sentence)

    @term
    def uniform(self, outputs, step):
        return sum(uniformity(view) for view in outputs.sentence) * HALF
"""


@pytest.mark.usefixtures("own_registry")
def test_a_method_of_ones_own_and_its_report(tmp_path, small_backbone, cluster, monkeypatch):
    """Prevents workers that do not have the method, or the file beside it, a file that is read and
    not run, a key without its source, a report without an interval against a baseline, and runs
    that are done again after an edited comment."""
    monkeypatch.delenv("CSELAB_DATA", raising=False)
    file, half = tmp_path / "my_method.py", tmp_path / "half.py"
    file.write_text(METHOD)
    half.write_text("HALF = 1 / 2")
    options = ("--scheduler", cluster.address, "-p", "device=cpu")
    which = {"seeds": "1-3", "methods": (file, "simcse")}

    def swept() -> str:
        return ended(sweep(tmp_path, small_backbone, *options, **which))

    assert "6 of 6 runs" in swept()
    report = ["report", "--store", tmp_path / "s.sqlite", "--against", "simcse"]
    cli.app([*map(str, report), "--folder", str(tmp_path / "report")], standalone_mode=False)
    lines = (tmp_path / "report" / "report.md").read_text().splitlines()
    (row,) = (line for line in lines if line.startswith("| mine |") and "[" in line)
    assert row.count("[") == 1  # the interval of the paired difference
    file.write_text(file.read_text().replace("    @term", "    # a comment\n    @term", 1))
    assert "6 of them in the store before" in swept()
    half.write_text("HALF = 1 / 3")
    assert "3 of them in the store before" in swept()
    assert len(runs(tmp_path)) == 9


def test_a_lost_scheduler_costs_no_finished_run(tmp_path, small_backbone, cluster):
    """Prevents a store that a lost scheduler empties, and a sweep that waits for it."""

    def start() -> subprocess.Popen:
        options = {"seeds": "1-5", "methods": ["simcse"]}
        return sweep(tmp_path, small_backbone, "--scheduler", cluster.address, **options)

    process = start()
    store = tmp_path / "s.sqlite"
    until(lambda: store.exists() and len(Store(store).runs()) > 1, process)
    cluster.scheduler.kill()
    out, errors = process.communicate(timeout=200)
    assert process.returncode == 2, out + errors
    (line,) = (line for line in errors.splitlines() if line.startswith("cselab: scheduler "))
    assert "the same command goes on" in line
    kept = rows(tmp_path)
    cluster.stop()
    cluster.start()
    assert "5 of 5 runs, " in ended(start())
    assert runs(tmp_path) == [("simcse", seed) for seed in range(1, 6)]
    assert kept.value.to_dict().items() <= rows(tmp_path).value.to_dict().items()


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
