"""Public checkpoints by their names on the hub, as notebook 07 measures them."""

import subprocess
import sys

import pytest

pytestmark = pytest.mark.slow

PROGRAM = """
import sys
import torch
from cselab import open_lab
from cselab.errors import CselabError
from cselab.experiments.measures import energy, geometry
from cselab.models import load_backbone

lab = open_lab("hub", outputs=sys.argv[1], hub=True, sentences=100, device="cpu", dev_pairs=50)
for name in sys.argv[2:]:
    try:
        (encoder,) = lab.checkpoints([name]).values()
        uniformity, alignment = geometry(lab.data, encoder)
        print(encoder.pooling, uniformity < 0, alignment > 0, energy(lab.data, encoder) > 0)
    except CselabError as error:
        print(f"ERROR {error}")
"""
NAMES = (
    "princeton-nlp/unsup-simcse-bert-base-uncased",
    "sentence-transformers/bert-base-nli-mean-tokens",
    "google-bert/bert-base-uncased",
    "princeton-nlp/no-such-model",
)


def test_checkpoints_by_name(hub, tmp_path):
    """Prevents a checkpoint without safetensors that is refused, modules that are not fetched (a
    mean becomes [CLS]), copies in other formats that are, and a traceback for a wrong name."""
    hub.requests.clear()
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(tmp_path), *NAMES],
        env=hub.environment,
        capture_output=True,
        text=True,
        timeout=300,
        stdin=subprocess.DEVNULL,
    )
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[:3] == [f"{pooling} True True True" for pooling in ("cls", "mean", "cls")]
    assert lines[3].startswith("ERROR there is no model 'princeton-nlp/no-such-model' on the hub")
    assert not [path for path in hub.requests if "onnx" in path]
