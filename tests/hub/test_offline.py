"""A cluster's node: no network, and a cache that was filled before."""

import subprocess
import sys

import pytest

pytestmark = pytest.mark.slow

PROGRAM = """
import sys, time
from cselab import open_lab
from cselab.errors import CselabError

def attempt(backbone, *methods):
    started = time.perf_counter()
    try:
        lab = open_lab("hub", outputs=sys.argv[1], profile="paper", backbone=backbone,
                       pivots=("fr", "ru"), sentences=200, device="cpu")
        lab.check(*methods)
    except CselabError as error:
        print(f"ERROR {error}")
    print(f"SECONDS {time.perf_counter() - started:.1f}")
"""
KNOWN = 'attempt("google-bert/bert-base-uncased", "jtcse", "simcse_supervised")\n'
MISSING = 'attempt("FacebookAI/roberta-base", "simcse")\n'


def run(program, folder, environment):
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM + program, str(folder)],
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
        stdin=subprocess.DEVNULL,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def filled(hub, tmp_path_factory):
    """The variables of a process whose cache has what profile `paper` reads for BERT."""
    home = tmp_path_factory.mktemp("filled")
    out = run(KNOWN, home / "outputs", hub.environment_with(home))
    assert "checked: 200 sentences (hub (princeton-nlp/datasets-for-simcse" in out
    return hub.environment_with(home)


@pytest.mark.parametrize("how", ["HF_HUB_OFFLINE", "no network"])
def test_a_filled_cache_is_enough_and_what_it_lacks_is_one_line(how, hub, filled, tmp_path):
    """Prevents a cached model that is not used, minutes of retries, and synthetic text in its
    place."""
    offline = how == "HF_HUB_OFFLINE"
    changed = {"HF_HUB_OFFLINE": "1"} if offline else {"HF_ENDPOINT": "http://127.0.0.1:9"}
    hub.requests.clear()
    out = run(KNOWN + MISSING, tmp_path, filled | changed).splitlines()
    assert hub.requests == []
    assert "checked: 200 sentences (hub (princeton-nlp/datasets-for-simcse" in "\n".join(out)
    (error,) = (line for line in out if line.startswith("ERROR"))
    why = "HF_HUB_OFFLINE is set" if how == "HF_HUB_OFFLINE" else "the hub does not answer"
    said = f"ERROR simcse: FacebookAI/roberta-base is not in the hub's cache, and {why};"
    assert error.startswith(said)
    assert error.endswith("where there is a network: hf download FacebookAI/roberta-base")
    seconds = [float(line.split()[1]) for line in out if line.startswith("SECONDS")]
    assert max(seconds) < 60


def test_roberta_without_a_pooler_is_said_before_any_training(hub, filled, tmp_path):
    """Prevents two trained towers and then advice that is no setting."""
    out = run('attempt("FacebookAI/roberta-base", "jtcse")\n', tmp_path, filled)
    assert "ERROR jtcse: FacebookAI/roberta-base has no trained pooler" in out
    assert "pooler='fresh'" in out
    assert "measured_on" in out
    assert not list((tmp_path / "steps").iterdir())
