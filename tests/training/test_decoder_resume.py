"""A decoder's training: small checkpoints, from which it goes on to the same weights."""

import pytest
import torch
from build_method import build
from llama_helpers import save_llama
from safetensors.torch import load_file
from training_helpers import TEXT, Scores, same, schedule

from cselab.data.nli import tokenize_triplets
from cselab.data.synthetic.sets import Triplet
from cselab.models import decoder_memory, load_decoder
from cselab.training import fit

DEV = (0, 9, 3, 5)


class Killed(Exception):
    """Stands for a kill."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory, word_tokenizer):
    folder = tmp_path_factory.mktemp("decoder") / "llama"
    return str(save_llama(folder, word_tokenizer, layers=2))


@pytest.fixture(scope="module")
def rows(tmp_path_factory, word_tokenizer):
    path = tmp_path_factory.mktemp("rows") / "triplets.arrow"
    triplets = [Triplet(*three) for three in zip(TEXT, TEXT[1:], TEXT[2:], strict=False)]
    return tokenize_triplets(triplets, word_tokenizer, path, max_length=16)


def trained(folder, rows, scores, checkpoints=None):
    torch.manual_seed(3)  # of the adapters
    method = build("bellm", [folder], lora_rank=2, gradient_checkpointing=True)
    options = {"seed": 7, "checkpoints": checkpoints}
    return fit(method, rows, schedule(), dev=scores, **options), method.state_dict()


@pytest.mark.parametrize("scores", [DEV, (9, 1, 2, 3)])
def test_checkpoints_hold_adapters_alone_and_resume_to_the_same_weights(
    folder, rows, tmp_path, scores
):
    """Prevents a checkpoint with all weights of a 7B model, and a best step, the start among them,
    that does not come back from one without them."""
    expected, weights = trained(folder, rows, Scores(*scores))

    def killed(method):
        if len(first.seen) == 3:
            raise Killed
        return first(method)

    first, run = Scores(*scores), tmp_path / "run"
    with pytest.raises(Killed):
        trained(folder, rows, killed, run)
    (last, *_) = sorted(run.iterdir(), reverse=True)
    tensors = load_file(last / "model.safetensors")
    assert all(".lora_" in name for name in tensors)
    config = load_decoder(folder)[0].config
    stated = decoder_memory(config, rank=2, weights="float32")
    files = ("model.safetensors", "best.safetensors", "optimizer.pt")
    on_disk = sum((last / name).stat().st_size for name in files)
    assert stated["checkpoint"] <= on_disk < stated["checkpoint"] + 60_000  # names and shapes
    result, found = trained(folder, rows, Scores(*scores[3:]), run)
    assert same(found, weights)
    assert (result.best_step, result.history) == (expected.best_step, expected.history)
