"""A killed run of mteb goes on where it was."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

NAMES = ["SyntheticPairClassification", "SyntheticReranking", "SyntheticCaptionRetrieval"]
KILLED = """
import os, signal, sys
from test_mteb_resume import evaluate

def kill(number):
    if number == 4:
        os.kill(os.getpid(), signal.SIGKILL)

evaluate(sys.argv[1], kill)
"""


class Lengths:
    """An encoder that counts its calls, and tells of each before it answers."""

    def __init__(self, tell):
        self.tell, self.calls = tell, []

    def encode(self, sentences):
        self.calls.append(sentences[0])
        self.tell(len(self.calls))
        return np.array([[len(text), text.count("e"), 1.0] for text in sentences])


def evaluate(results, tell=lambda number: None):
    """Evaluate three tasks; the first text of each call of the encoder, and the lines printed."""
    from cselab.evaluation.mteb_feed import feed
    from cselab.evaluation.mteb_run import run_mteb
    from cselab.evaluation.mteb_tasks import find_tasks

    encoder, said = Lengths(tell), []
    tasks, _ = feed(find_tasks(NAMES))
    run_mteb(encoder, tasks, results, name="test", revision="1", say=said.append)
    return encoder.calls, said


@pytest.mark.slow
def test_a_killed_run_computes_only_what_was_not_finished(tmp_path):
    """Prevents finished tasks from being encoded again after a kill, and another score of a task
    that was evaluated after one."""
    whole, results = tmp_path / "whole", tmp_path / "killed"
    calls, _ = evaluate(whole)
    assert len(calls) == 6  # two columns, or queries and documents, of three tasks
    command = [sys.executable, "-c", KILLED, str(results)]
    where = {**os.environ, "PYTHONPATH": str(Path(__file__).parent)}
    killed = subprocess.run(command, capture_output=True, text=True, env=where, timeout=300)
    assert killed.returncode == -signal.SIGKILL, killed.stderr  # at documents of the second task
    assert [path.stem for path in results.rglob("Synthetic*.json")] == NAMES[:1]
    again, said = evaluate(results)
    assert again == calls[2:]
    assert [line.endswith("(finished before)") for line in said] == [True, False, False]
    nothing, said = evaluate(results)
    assert nothing == []
    for path in whole.rglob("Synthetic*.json"):
        (twin,) = results.rglob(path.name)
        one, two = (json.loads(file.read_text())["scores"] for file in (path, twin))
        assert one == two
