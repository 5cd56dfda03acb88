"""Masked language models: load one, fill masked words, and compute token losses by sentence."""

from pathlib import Path

import torch
from jaxtyping import Float
from torch import Tensor, nn
from transformers import AutoModelForMaskedLM

from cselab.errors import ModelError
from cselab.models.backbone import quiet_loading


def load_masked_lm(folder: str | Path) -> nn.Module:
    """Load a checkpoint with its masked-LM head, in float32 and evaluation mode.

    Shared weights are copied, because the checkpoint of a method must contain each tensor once.
    """
    with torch.random.fork_rng(devices=[]), quiet_loading():
        model, info = AutoModelForMaskedLM.from_pretrained(
            folder, dtype=torch.float32, output_loading_info=True, trust_remote_code=False
        )
    if info["missing_keys"]:
        raise ModelError(
            f"{folder} has no masked-LM head ({', '.join(sorted(info['missing_keys'])[:2])}, …); "
            "use a pretrained checkpoint, such as the shipped backbone"
        )
    known: set[int] = set()
    for module in model.modules():
        for name, weight in module.named_parameters(recurse=False):
            if id(weight) in known:
                setattr(module, name, nn.Parameter(weight.detach().clone()))
            known.add(id(weight))
    return model.eval()


def fill_masks(model: nn.Module, ids: Tensor, mask: Tensor, masked: Tensor) -> Tensor:
    """Replace the tokens of `ids`, (B, L), that are masked in `masked` by samples of the model."""
    with torch.no_grad():
        hidden = masked != ids
        logits = model(input_ids=masked, attention_mask=mask).logits[hidden].float()
        drawn = torch.multinomial(logits.softmax(-1), 1)[:, 0] if len(logits) else ids.new_empty(0)
        return ids.masked_scatter(hidden, drawn)


def sums_by_sentence(losses: Float[Tensor, "N L"], counted: Tensor) -> Float[Tensor, "1 N 2"]:
    """Sum and number of the `counted` tokens' losses, which can be gathered and chunked as
    vectors."""
    return torch.stack([(losses * counted).sum(1), counted.sum(1).to(losses.dtype)], dim=-1)[None]


def token_mean(parts: Float[Tensor, "1 N 2"]) -> Float[Tensor, ""]:
    """Mean loss over all tokens, from `sums_by_sentence`."""
    total, count = parts[0].sum(0)
    return total / count.clamp_min(1)
