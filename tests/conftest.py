"""Shared fixtures: where the real evaluation data is, and small random models."""

import os
from pathlib import Path

# before torch is imported: each test process is one of several, on models of a few layers
os.environ.setdefault("OMP_NUM_THREADS", "1")

import pytest

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="session")
def data_dir() -> Path:
    """The real evaluation data: CSELAB_DATA, or ../shared/data beside the project; skipped where
    there is none."""
    for candidate in (os.environ.get("CSELAB_DATA"), ROOT.parent / "shared" / "data"):
        if candidate and (Path(candidate) / "sts" / "stsb-dev.tsv.gz").is_file():
            return Path(candidate)
    pytest.skip("no evaluation data: set CSELAB_DATA to a folder that holds sts/stsb-dev.tsv.gz")


@pytest.fixture(autouse=True)
def _no_output_folders_of_a_user(monkeypatch):
    for variable in ("CSELAB_RUN_DIR", "CSELAB_OUTPUTS"):
        monkeypatch.delenv(variable, raising=False)


@pytest.fixture
def own_registry(monkeypatch):
    """The methods registered so far; what a test adds is gone after it."""
    from cselab.methods import method_names, registry

    method_names()  # finds the shipped ones, once a process
    monkeypatch.setattr(registry, "_METHODS", dict(registry._METHODS))


@pytest.fixture(scope="session", autouse=True)
def _nothing_of_a_user_changes():
    """Prevents rows of tests among those of somebody's own runs."""
    before = _outputs_of_users()
    yield
    changed = {path for path, _ in before ^ _outputs_of_users()}
    assert not changed, f"a test (or a run meanwhile) wrote into outputs: {sorted(changed)[:5]}"


def _outputs_of_users() -> set[tuple[str, int]]:
    """Files in the project's outputs, but for those that belong to it, with their times."""
    folders = [path for path in (ROOT / "outputs").iterdir() if path.name != "reference"]
    files = (path for folder in folders for path in [folder, *folder.rglob("*")])
    return {(str(path), path.stat().st_mtime_ns) for path in files if path.is_file()}


@pytest.fixture(scope="session")
def browser():
    """Headless Chromium of the system. Without one the tests are skipped; with
    CSELAB_BROWSER=required they fail."""
    from playwright.sync_api import sync_playwright

    from cselab.cli import doctor

    path = doctor.browser()
    if path is None:
        reason = f"no browser on the PATH ({', '.join(doctor.BROWSERS)}): apt install chromium"
        if os.environ.get("CSELAB_BROWSER") == "required":
            pytest.fail(reason)
        pytest.skip(reason)
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(
            executable_path=path, args=["--no-sandbox", "--use-gl=swiftshader"]
        )
        yield chromium
        chromium.close()


WORDS = (
    "a the man woman dog cat boy girl is are was not playing eating running sleeping guitar ball "
    "fish bread quickly big small red in on under park house table . , ? of and"
)


@pytest.fixture(scope="session")
def word_tokenizer():
    """A whole-word tokenizer over `WORDS`, saved and loaded like a real one."""
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
    from transformers import PreTrainedTokenizerFast

    special = {
        f"{name}_token": f"[{name.upper()}]" for name in ("pad", "unk", "cls", "sep", "mask")
    }
    vocabulary = {word: i for i, word in enumerate([*special.values(), *WORDS.split()])}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.Lowercase()
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[("[CLS]", 2), ("[SEP]", 3)],
    )
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, model_max_length=64, **special)


def _config(word_tokenizer, **changes) -> dict:
    return {
        "vocab_size": len(word_tokenizer),
        "hidden_size": 32,
        "num_hidden_layers": 4,
        "num_attention_heads": 4,
        "intermediate_size": 64,
        "max_position_embeddings": 66,
        "pad_token_id": word_tokenizer.pad_token_id,
        **changes,
    }


@pytest.fixture(scope="session")
def make_bert(word_tokenizer):
    """`make_bert(seed=0, **config changes)`: a random BERT of 4 layers, 32 wide, with LayerNorms
    and biases off their defaults."""
    from transformers import BertConfig, BertModel

    def make(seed=0, **changes):
        return _random(BertModel, BertConfig(**_config(word_tokenizer, **changes)), seed)

    return make


@pytest.fixture(scope="session")
def make_roberta(word_tokenizer):
    """The same for RoBERTa, whose positions start after the padding index."""
    from transformers import RobertaConfig, RobertaModel

    def make(seed=0, **changes):
        return _random(RobertaModel, RobertaConfig(**_config(word_tokenizer, **changes)), seed)

    return make


@pytest.fixture(params=["bert", "roberta"])
def make_tower(request):
    """Both families, one after the other."""
    return request.getfixturevalue(f"make_{request.param}")


def _random(model_class, config, seed):
    import torch

    with torch.random.fork_rng():
        torch.manual_seed(seed)
        model = model_class._from_config(config, attn_implementation="sdpa")
        with torch.no_grad():
            # default biases of 0 and gains of 1 would hide a missing term
            for parameter in model.parameters():
                parameter.add_(0.05 * torch.randn_like(parameter))
    return model.eval()


@pytest.fixture(scope="session")
def small_backbone(tmp_path_factory, make_bert, word_tokenizer) -> str:
    """A folder with a random BERT of a few layers, for tests that train it."""
    from cselab.models import SentenceEncoder

    folder = tmp_path_factory.mktemp("backbone") / "bert"
    SentenceEncoder(make_bert(1), word_tokenizer).save_pretrained(folder)
    return str(folder)


@pytest.fixture(scope="session")
def small_pretrained(tmp_path_factory, word_tokenizer) -> str:
    """A folder with a random BERT that has a pooler and a masked-LM head, as a pretrained
    checkpoint has."""
    import torch
    from transformers import BertConfig, BertForPreTraining

    folder = tmp_path_factory.mktemp("pretrained") / "bert"
    with torch.random.fork_rng():
        torch.manual_seed(0)
        BertForPreTraining(BertConfig(**_config(word_tokenizer))).save_pretrained(folder)
    word_tokenizer.save_pretrained(folder)
    return str(folder)
