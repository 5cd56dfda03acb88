"""Profile `paper` from start to end on the simulated hub, its steps cut: what somebody with a GPU
and the hub types."""

import json
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

DATA = {"sentences": 130, "triplets": 130, "device": "cpu", "dev_pairs": 100}
SHORT = {"steps": 2, "eval_every": 2}
TOWERS = {f"towers.{name}": value for name, value in SHORT.items()}
PARTS = ("towers", "teacher", "teachers", "twin", "outsider")
ALL = {**DATA, **SHORT, **{f"{part}.{name}": SHORT[name] for part in PARTS for name in SHORT}}
"""Short trainings of all methods: their own, and of the encoders that they start from."""
QWEN = {"decoder": "Qwen/Qwen2.5-0.5B"}
ROBERTA = {"backbone": "FacebookAI/roberta-base"}


def cselab(hub, *arguments, **settings):
    """One command line, in a process of its own that can ask nobody anything."""
    given = [part for name, value in settings.items() for part in ("-p", f"{name}={value}")]
    return subprocess.run(
        [sys.executable, "-m", "cselab", *map(str, arguments), *given],
        env=hub.environment,
        capture_output=True,
        text=True,
        timeout=1500,
        stdin=subprocess.DEVNULL,
    )


def test_all_notebooks_at_paper_size(hub, tmp_path):
    """Prevents an error after all training, as of a last cell that asks for a test which the hub
    does not have."""
    options = ["--profile", "paper", "--outputs", tmp_path, "--name", "p"]
    done = cselab(hub, "run", *options, **ALL, **QWEN)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("  finished") == 16
    lines = (tmp_path / "runs" / "p" / "results.jsonl").read_text().splitlines()
    rows = [json.loads(line) for line in lines]
    pairs = {row["task"]: row["n"] for row in rows if row["method"] == "JTCSE"}
    assert pairs["SICK-R"] == 4927
    assert len(pairs) == 7
    assert all(row["data_source"].startswith("hub (") for row in rows)
    stamps = list(Path(tmp_path, "steps").glob("simcse_supervised-*/step.json"))
    assert stamps
    for stamp in stamps:
        assert json.loads(stamp.read_text())["inputs"]["config"]["schedule"]["steps"] == 2


@pytest.mark.parametrize(
    ("method", "settings"),
    [
        ("jtcse", {"pooler": "fresh", **ROBERTA, **TOWERS}),
        ("tncse", {"terms.ictm.measured_on": "cls", **ROBERTA, **TOWERS}),
        ("promptbert", ROBERTA),
        ("simcse_supervised", {}),
        ("bellm", QWEN),
        ("bellm", {"decoder": "meta-llama/Llama-2-7b-hf"}),
        ("simcse", {"round_trips": '{"pivot": "fr", "translator": "multilingual"}'}),
    ],
)
def test_training_and_exporting(hub, tmp_path, method, settings):
    """Prevents a backbone of the hub that trains and then does not leave."""
    given = {"profile": "paper", "tasks": "STS16", **DATA, **SHORT, **settings}
    done = cselab(hub, "train", method, "--outputs", tmp_path, **given)
    assert done.returncode == 0, done.stdout + done.stderr
    dev = [line.split() for line in done.stdout.splitlines() if line.startswith("dev")]
    assert float(dev[0][2]) != 0.0  # an encoder that gives every sentence one vector ranks nothing
    if method in ("jtcse", "tncse", "simcse"):
        (encoder,) = Path(tmp_path, "steps").glob(f"{method}-*/encoder")
        done = cselab(hub, "export", encoder, tmp_path / "exported")
        assert done.returncode == 0, done.stderr
        assert (tmp_path / "exported" / "modules.json").is_file()


def test_a_sweep(hub, tmp_path):
    """Prevents workers that see another hub than the command, and two seeds that are one run."""
    store = tmp_path / "s.sqlite"
    methods = ["-m", "simcse", "-m", "edfse", "--seeds", "1-2"]
    options = [*methods, "--workers", 2, "--store", store, "--outputs", tmp_path]
    given = {"profile": "paper", "tasks": "STS16", "pivots": '["fr", "ru"]', **DATA}
    done = cselab(hub, "sweep", *options, **given, **SHORT, **TOWERS)
    assert done.returncode == 0, done.stdout + done.stderr
    with sqlite3.connect(store) as connection:
        query = "select label, seed, state from runs order by label, seed"
        states = connection.execute(query).fetchall()
    assert states == [(label, seed, "done") for label in ("edfse", "simcse") for seed in (1, 2)]


def test_the_decoders_notebook_on_an_encoder_is_one_line(hub, tmp_path):
    """Prevents a traceback where a name of the hub is of the other kind."""
    given = {"profile": "paper", "decoder": "FacebookAI/roberta-base"}
    done = cselab(hub, "train", "bellm", "--outputs", tmp_path, **given)
    assert done.returncode == 2
    assert done.stderr.strip().splitlines()[-1].startswith("cselab: bellm: ")
    assert "Traceback" not in done.stderr
