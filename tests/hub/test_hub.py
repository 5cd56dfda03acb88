"""The public hub: a model is downloaded once, and profile `paper` runs on a filled cache, its steps
cut: what somebody with a GPU and the hub types."""

import json
import os
import shutil
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from stand_ins import COMMIT, fill, save_bert

pytestmark = pytest.mark.slow
READ_BY_CLIENTS = ("HF_", "HUGGINGFACE_", "TRANSFORMERS_", "DATASETS_", "CSELAB_DATA")
"""Prefixes of variables that a developer's shell may set and that change where data comes from."""
NAME = "sentence-transformers/bert-base-nli-mean-tokens"


def run(home, *words, **changes) -> str:
    """The output of Python, with a cache of the hub and nobody to ask."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(READ_BY_CLIENTS)}
    kept |= {"HF_HOME": str(home), "HF_HUB_DISABLE_XET": "1", "NO_PROXY": "127.0.0.1"}
    # else transformers asks a public service to convert what has only a pytorch_model.bin
    kept |= {"DISABLE_SAFETENSORS_CONVERSION": "1", "HF_HUB_DISABLE_PROGRESS_BARS": "1"}
    options = {"capture_output": True, "text": True, "stdin": subprocess.DEVNULL, "timeout": 1500}
    done = subprocess.run([sys.executable, *map(str, words)], env={**kept, **changes}, **options)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return done.stdout


class Hub(BaseHTTPRequestHandler):
    """A hub with one model, of the server's `folder`; it keeps what it is `asked` for."""

    protocol_version = "HTTP/1.1"  # connections stay open, as the client expects

    def do_GET(self) -> None:
        self.server.asked.append(self.path)
        folder, headers = self.server.folder, {}
        files = {p.relative_to(folder).as_posix(): p for p in folder.rglob("*") if p.is_file()}
        status, body = 200, b""
        if self.path.startswith(f"/api/models/{NAME}"):
            tree = [
                {"type": "file", "path": name, "oid": COMMIT, "size": path.stat().st_size}
                for name, path in files.items()
            ]
            about = {"id": NAME, "sha": COMMIT, "siblings": [{"rfilename": name} for name in files]}
            about |= {"tags": [], "downloads": 0, "private": False, "gated": False}
            body = json.dumps(tree if "/tree/" in self.path else about).encode()
        elif path := files.get(self.path.removeprefix(f"/{NAME}/resolve/{COMMIT}/")):
            body, headers = path.read_bytes(), {"X-Repo-Commit": COMMIT, "ETag": f'"{hash(path)}"'}
        else:  # the public hub's answer to an anonymous client
            status, headers = 401, {"X-Error-Code": "RepoNotFound"}
        self.send_response(status)
        for name, value in {**headers, "Content-Length": str(len(body))}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    do_HEAD = do_GET

    def log_message(self, *args: object) -> None:
        """Nothing on the terminal."""


@pytest.fixture
def server(tmp_path):
    """A running hub, whose model has modules, pickled weights and a copy in another format."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Hub)
    server.folder, server.asked = tmp_path / "model", []
    for name in ("1_Pooling", "onnx"):
        (server.folder / name).mkdir(parents=True)
    save_bert(server.folder, pickled=True)
    kinds = {"": "Transformer", "1_Pooling": "Pooling"}
    modules = [
        {"idx": i, "name": str(i), "path": path, "type": f"sentence_transformers.models.{kind}"}
        for i, (path, kind) in enumerate(kinds.items())
    ]
    (server.folder / "modules.json").write_text(json.dumps(modules))
    pooling = {"word_embedding_dimension": 32, "pooling_mode_mean_tokens": True}
    (server.folder / "1_Pooling" / "config.json").write_text(json.dumps(pooling))
    (server.folder / "onnx" / "model.onnx").write_bytes(b"another format")
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server
    server.shutdown()
    server.server_close()


CHECKPOINTS = f"""
import sys, time
from cselab import open_lab
from cselab.errors import CselabError
from cselab.experiments.measures import energy

data = dict.fromkeys(("corpus", "tasks", "dev_task"), "Synthetic") | {{"corpus": "synthetic"}}
lab = open_lab("hub", outputs=sys.argv[1], hub=True, device="cpu", **data)
for name in ({NAME!r}, "princeton-nlp/no-such-model"):
    began = time.perf_counter()
    try:
        (encoder,) = lab.checkpoints([name]).values()
        print(encoder.pooling, energy(lab.data, encoder) > 0)
    except CselabError as error:
        print(error)
    assert time.perf_counter() - began < 60
"""


def test_a_model_is_downloaded_once_and_found_without_a_network(server, tmp_path):
    """Prevents a checkpoint without safetensors that is refused, modules that are not fetched (a
    mean becomes [CLS]), copies in other formats that are, a cached model that is not used, minutes
    of retries, and a traceback for a wrong name."""
    address = f"http://127.0.0.1:{server.server_port}"

    def lines(**changes) -> list[str]:
        return run(tmp_path, "-c", CHECKPOINTS, tmp_path / "o", **changes).splitlines()

    found, unknown = lines(HF_ENDPOINT=address)
    assert found == "mean True"
    assert unknown.startswith("there is no model 'princeton-nlp/no-such-model' on the hub")
    assert not [path for path in server.asked if "onnx" in path]
    server.asked.clear()
    for changes, why in (
        ({"HF_ENDPOINT": address, "HF_HUB_OFFLINE": "1"}, "HF_HUB_OFFLINE is set"),
        ({"HF_ENDPOINT": "http://127.0.0.1:9"}, "the hub does not answer"),
    ):
        found, lacking = lines(**changes)
        assert found == "mean True"
        said = f"princeton-nlp/no-such-model is not in the hub's cache, and {why}; where there is"
        assert lacking.startswith(said)
    assert server.asked == []


DATA = {"sentences": 130, "triplets": 130, "device": "cpu", "dev_pairs": 100, "profile": "paper"}
SHORT = {"steps": 2, "eval_every": 2}
PARTS = ("towers", "teacher", "teachers", "twin", "outsider")
ALL = {**DATA, **SHORT, **{f"{part}.{name}": SHORT[name] for part in PARTS for name in SHORT}}
"""Short trainings of all methods: their own, and of the encoders that they start from."""
TOWERS = {f"towers.{name}": value for name, value in SHORT.items()}
QWEN = {"decoder": "Qwen/Qwen2.5-0.5B"}
ROBERTA = {"backbone": "FacebookAI/roberta-base"}
AS_PAPER = {"corpus": "wiki1m,sickr", "sts_text": "senteval"}
OUTSIDER = {"outsider.method": "untrained", "outsider.backbone": "ffgcc/InfoCSE-bert-base"}
TRAINED = [
    ("jtcse", {**AS_PAPER, **TOWERS}),
    ("uc_d", {**AS_PAPER, **OUTSIDER, **{f"teacher.{k}": v for k, v in SHORT.items()}}),
    ("jtcse", {"pooler": "fresh", **ROBERTA, **TOWERS}),
    ("tncse", {"terms.ictm.measured_on": "cls", **ROBERTA, **TOWERS}),
    ("promptbert", ROBERTA),
    ("simcse_supervised", {}),
    ("bellm", QWEN),
    ("simcse", {}),
]
REFUSED = [("jtcse", ROBERTA), ("bellm", {"decoder": "FacebookAI/roberta-base"})]
COMMANDS = """
import glob, json, sys
from cselab import cli
from cselab.errors import CselabError

outputs = sys.argv[2]
for words in json.loads(sys.argv[1]):
    try:
        cli.app([*words, "--outputs", outputs], standalone_mode=False)
    except CselabError as error:
        print("ERROR", error)
for name in ("jtcse", "tncse", "simcse"):  # the others put a prompt around the sentence
    (encoder, *_) = glob.glob(f"{outputs}/steps/{name}-*/encoder")
    cli.app(["export", encoder, f"{outputs}/exported/{name}"], standalone_mode=False)
"""


def parameters(settings) -> list[str]:
    return [part for name, value in settings.items() for part in ("-p", f"{name}={value}")]


@pytest.fixture(scope="module")
def filled(tmp_path_factory):
    """A folder whose cache has what the profile `paper` reads."""
    home = tmp_path_factory.mktemp("hub")
    fill(home)
    return home


def test_training_and_exporting(filled, tmp_path):
    """Prevents a backbone of the hub that trains and then does not leave, advice that is no
    setting, and a traceback where a name of the hub is of the other kind."""
    options = {**DATA, **SHORT, "tasks": "STS16"}
    commands = [
        ["train", method, *parameters({**options, **settings})]
        for method, settings in [*TRAINED, *REFUSED]
    ]
    out = run(filled, "-c", COMMANDS, json.dumps(commands), tmp_path, HF_HUB_OFFLINE="1")
    lines = out.splitlines()
    dev = [float(line.split()[2]) for line in lines if line.startswith("dev ")]
    assert len(dev) == len(TRAINED)
    assert all(dev)  # an encoder that gives every sentence one vector ranks nothing
    no_pooler, no_decoder = (line for line in lines if line.startswith("ERROR"))
    assert no_pooler.startswith("ERROR jtcse: ")
    assert "has no trained pooler" in no_pooler
    assert "pooler='fresh'" in no_pooler
    assert no_decoder.startswith("ERROR bellm: ")
    assert len(list((tmp_path / "exported").glob("*/modules.json"))) == 3


BELLM = """
import glob, json, sys
import torch
import cselab
from cselab import cli
from cselab.errors import CselabError

trains, outputs = json.loads(sys.argv[1]), sys.argv[2]
for words in trains:
    try:
        cli.app([*words, "--outputs", outputs], standalone_mode=False)
    except CselabError as error:
        print("ERROR", error)
for encoder in glob.glob(f"{outputs}/steps/bellm-*/encoder"):
    cli.app(["export", encoder, f"{outputs}/stock", "--stock"], standalone_mode=False)
    loaded = [cselab.load(folder).encode(["A dog."]) for folder in (encoder, f"{outputs}/stock")]
    close = torch.cosine_similarity(*loaded).item() > 0.999  # merged weights are rounded
    print("same", close, *glob.glob(f"{encoder}/*.saf*"))
    print("base", json.load(open(f"{encoder}/adapter_config.json"))["base_model_name_or_path"])
"""


def test_bellm_trains_the_papers_decoder(filled, tmp_path):
    """Prevents a profile `paper` that trains the small decoder, a copy of all its weights in each
    finished step, and tracebacks without CUDA or without the model."""
    settings = parameters({**DATA, **SHORT, "tasks": "STS16"})
    trains = [["train", name, *settings] for name in ("bellm", "bellm_two_stages")]

    def lines(home) -> list[str]:
        words = ("-c", BELLM, json.dumps(trains), tmp_path / home.name)
        return run(home, *words, HF_HUB_OFFLINE="1").splitlines()

    found = lines(filled)
    (same,) = [line.split() for line in found if line.startswith("same")]
    assert (same[1], len(same)) == ("True", 3)
    assert same[2].endswith("adapter_model.safetensors")
    assert "base meta-llama/Llama-2-7b-hf" in found
    (error,) = [line for line in found if line.startswith("ERROR")]
    assert error.startswith("ERROR bellm_two_stages: four_bit needs a CUDA device")
    missing = tmp_path / "missing"
    shutil.copytree(filled, missing, symlinks=True)
    shutil.rmtree(missing / "hub" / "models--meta-llama--Llama-2-7b-hf")
    error, _ = (line for line in lines(missing) if line.startswith("ERROR"))
    assert error.startswith("ERROR bellm: meta-llama/Llama-2-7b-hf is not in the hub's cache")
    assert error.endswith("tiny-llama")
    assert "or give another decoder: a folder, or one of" in error


def test_notebooks_at_paper_size(filled, tmp_path):
    """Prevents an error after all training, as of a last cell that asks for a test which the hub
    does not have."""
    words = ["run", "01", "03", "07", "10", "--outputs", tmp_path, "--name", "p"]
    settings = parameters({**ALL, **QWEN})
    out = run(filled, "-m", "cselab", *words, *settings, HF_HUB_OFFLINE="1")
    assert out.count("  finished") == 4
    lines = (tmp_path / "runs" / "p" / "results.jsonl").read_text().splitlines()
    rows = [json.loads(line) for line in lines]
    pairs = {row["task"]: row["n"] for row in rows if row["method"] == "JTCSE"}
    assert pairs["SICK-R"] == 4927
    assert len(pairs) == 7
    assert all(row["data_source"].startswith("hub (") for row in rows)
