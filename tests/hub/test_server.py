"""The simulated hub answers the public hub's clients as the public hub does."""

import json
import subprocess
import sys
import urllib.request

import pytest

pytestmark = pytest.mark.slow

BERT = "google-bert/bert-base-uncased"
CLIENT = f"""
import json
import tarfile
from pathlib import Path

from datasets import load_dataset
from huggingface_hub import HfApi, hf_hub_download, snapshot_download
from huggingface_hub.errors import HfHubHTTPError
from transformers import AutoModel, AutoTokenizer

def failure(*args, **options):
    try:
        hf_hub_download(*args, **options)
    except HfHubHTTPError as error:
        return type(error).__name__

def texts(folder):
    return load_dataset(folder)["test"]["sentence1"][:]

model = AutoModel.from_pretrained(snapshot_download("{BERT}"))
tokenizer = AutoTokenizer.from_pretrained("{BERT}")
sts = snapshot_download("mteb/sts16-sts", repo_type="dataset")
archive = hf_hub_download("princeton-nlp/datasets-for-simcse", "senteval.tar", repo_type="dataset")
with tarfile.open(archive) as opened:
    sick = opened.extractfile("SICK/SICK_test_annotated.txt").read().decode().splitlines()
print(json.dumps({{
    "layers": model.config.num_hidden_layers,
    "pooler": model.pooler is not None,
    "ids": tokenizer("A man is dancing in Tokyo.")["input_ids"],
    "unknown": tokenizer.unk_token_id,
    "from folder": texts(sts) == texts("mteb/sts16-sts"),
    "pairs": len(texts(sts)),
    "sick": [len(sick), sick[0].split("\\t")],
    "paths": [entry.path for entry in HfApi().get_paths_info("{BERT}", ["vocab.txt", "absent"])],
    "missing": [
        failure("nobody/nothing", "config.json"),
        failure("{BERT}", "absent"),
        failure("{BERT}", "config.json", revision="v9"),
    ],
}}))
"""
OFFLINE = f"""
from datasets import load_dataset
from huggingface_hub import hf_hub_download, snapshot_download
from transformers import AutoModel, AutoTokenizer

AutoModel.from_pretrained("{BERT}")
AutoTokenizer.from_pretrained("{BERT}")
snapshot_download("mteb/sts16-sts", repo_type="dataset")
load_dataset("mteb/sts16-sts", split="test")
hf_hub_download("princeton-nlp/datasets-for-simcse", "senteval.tar", repo_type="dataset")
"""


def run(code: str, environment: dict[str, str]) -> str:
    """Standard output of a new process; its errors are in the message if it fails."""
    command = [sys.executable, "-W", "ignore", "-c", code]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def answers(hub) -> dict:
    """What one process got from the hub, and the requests up to then."""
    return json.loads(run(CLIENT, hub.environment)) | {"requests": list(hub.requests)}


def test_model_with_all_its_weights(answers):
    """Prevents too few layers for the cross-attention layers, and a pooler that is not found."""
    assert answers["layers"] == 12
    assert answers["pooler"]


def test_tokenizer_knows_words(answers):
    """Prevents a vocabulary that is not loaded, with every word unknown."""
    assert answers["unknown"] not in answers["ids"]
    assert len(answers["ids"]) > 6


def test_dataset_by_id_and_from_its_folder(answers):
    """Prevents files that are not recognised as splits, and splits of another size."""
    assert answers["from folder"]
    assert answers["pairs"] == 1186


def test_sick_in_the_archive(answers):
    """Prevents another layout than SimCSE's: its SICK test set has a header and 4,927 pairs."""
    lines, header = answers["sick"]
    assert lines == 1 + 4927
    assert header == [
        "pair_ID",
        "sentence_A",
        "sentence_B",
        "relatedness_score",
        "entailment_judgment",
    ]


def test_paths_info_leaves_out_absent_ones(answers):
    """Prevents an unread request body: every file would count as absent."""
    assert answers["paths"] == ["vocab.txt"]


def test_missing_things_have_their_error_types(answers):
    """Prevents one error for all: transformers accepts a missing file, not a missing repository."""
    assert answers["missing"] == [
        "RepositoryNotFoundError",
        "RemoteEntryNotFoundError",
        "RevisionNotFoundError",
    ]


def test_filled_cache_is_enough_offline(hub, answers):
    """Prevents a hidden request: a node without a network would wait for a timeout at each one."""
    assert f"GET /api/models/{BERT}/revision/main" in answers["requests"]
    hub.requests.clear()
    run(OFFLINE, hub.environment | {"HF_HUB_OFFLINE": "1"})
    assert hub.requests == []


def test_project_opens_decoders_translators_and_text(hub):
    """Prevents stand-ins that the clients accept and the project refuses."""
    code = """
from cselab.data.corpus import load_corpus
from cselab.data.sts import STS7, load_sts
from cselab.data.translation.translators import open_translator
from cselab.models.decoder import load_decoder

for name in ("meta-llama/Llama-2-7b-hf", "Qwen/Qwen2.5-0.5B"):
    model, tokenizer = load_decoder(name, bidirectional="last")
    assert len(model.layers) == 4 and tokenizer.pad_token == tokenizer.eos_token
sentences = ["A man is dancing.", "Three dogs ran at night."]
for name in ("opus-mt", "multilingual"):
    assert len(set(open_translator(name, "fr", hub=True)(sentences))) == 2
for task in STS7:
    assert load_sts(task, "all" if task == "SICK-R" else "test", hub=True).source.kind == "hub"
assert load_corpus(hub=True).source.kind == "hub"
"""
    run(code, hub.environment)


def test_part_of_a_file(hub):
    """Prevents a resumed download that appends the whole file to its first part."""
    url = f"{hub.address}/{BERT}/resolve/main/config.json"
    with urllib.request.urlopen(url) as answer:
        whole = answer.read()
    rest = urllib.request.Request(url, headers={"Range": "bytes=10-"})
    with urllib.request.urlopen(rest) as answer:
        assert answer.status == 206
        assert answer.headers["Content-Range"] == f"bytes 10-{len(whole) - 1}/{len(whole)}"
        assert answer.read() == whole[10:]


def test_weights_are_those_of_the_file(hub):
    """Prevents parameters of other names than transformers expects, which load as random ones."""
    code = f"""
from huggingface_hub import hf_hub_download
from safetensors.torch import load_file
from transformers import AutoModel
POOLER = ["pooler.dense.bias", "pooler.dense.weight"]
for name, prefix, gain, missing in (
    ("{BERT}", "bert", "gamma", []), ("FacebookAI/roberta-base", "roberta", "weight", POOLER)
):
    stored = load_file(hf_hub_download(name, "model.safetensors"))
    model, info = AutoModel.from_pretrained(name, output_loading_info=True)
    assert sorted(info["missing_keys"]) == missing, info
    layer, loaded = prefix + ".encoder.layer.11.output.", model.encoder.layer[11].output
    assert (loaded.dense.weight == stored[layer + "dense.weight"]).all()
    assert layer + "LayerNorm." + gain in stored
"""
    run(code, hub.environment)


def test_triplets_have_simcse_header_and_count(hub):
    """Prevents a late file that is not written, and another count than the supervised set's."""
    files = f"{hub.address}/datasets/princeton-nlp/datasets-for-simcse/resolve/main"
    with urllib.request.urlopen(f"{files}/nli_for_simcse.csv") as answer:
        lines = answer.read().decode().splitlines()
    assert lines[0] == "sent0,sent1,hard_neg"
    assert len(lines) == len(set(lines)) == 1 + 275_601
